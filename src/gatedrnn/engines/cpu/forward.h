// The forward scan of one slice of the batch.
#pragma once
#include "task.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// States before `step` into panels: h from the output, c from a checkpoint (panels) where there is one.
template <class Real>
void load_states(const Task<Real>& task, const Slice& slice, const Space<Real>& space, int64_t step, const Real* checkpoint) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  int64_t stride = slice.rows * width;
  for (int64_t r = 0; r < slice.rows; ++r) {
    const Real* h = task.typed(scan.state[0]) + slice.row[r] * scan.recurrent;
    if (step > 0 && slice.length[r] >= step)
      h = task.typed(scan.output) + task.place(slice, r, step - 1) * scan.recurrent;
    row_to_panels(space.h[0] + r * width, stride, h, scan.recurrent);
    if (task.layout.memory && !checkpoint)
      row_to_panels(space.c + r * width, stride, task.typed(scan.state[1]) + slice.row[r] * scan.hidden, scan.hidden);
  }
  if (checkpoint) __builtin_memcpy(space.c, checkpoint, size_t(stride * task.hidden_panels) * sizeof(Real));
}

// x of a row at a step, followed by zeros up to `padded`.
template <class Real>
void pack_input_row(const Arrays<Real>& task, const Slice& slice, int64_t row, int64_t step, Real* packed, int64_t padded) {
  const GatedrnnScan& scan = task.scan;
  if (scan.inputs == 0) return;
  const Real* x = task.typed(scan.input) + task.place(slice, row, step, scan.input_strides);
  for (int64_t i = 0; i < scan.inputs; ++i) packed[i] = x[i * scan.input_strides[2]];
  for (int64_t i = scan.inputs; i < padded; ++i) packed[i] = 0;
}

// The columns of packed input rows in a panel.
template <class Real> void copy_input(const Task<Real>& task, const Real* packed, int64_t rows, int64_t p, Real* panel) {
  constexpr int64_t width = Tile<Real>::width;
  const int64_t columns = smaller(width, task.scan.inputs - p * width);
  for (int64_t r = 0; r < rows; ++r) row_to_panels(panel + r * width, 0, packed + r * task.input_row + p * width, columns);
}

// The hidden panels that a thread computes, and the team with whom it shares the others; -1: alone.
struct Share {
  int64_t first_panel, end_panel, team, member;
  int64_t panels() const { return end_panel - first_panel; }
};
template <class Real> Share share_of_thread(const Task<Real>& task, int64_t thread) {
  const int64_t team = task.plan.team, member = thread % team;
  return {member * task.hidden_panels / team, (member + 1) * task.hidden_panels / team, team > 1 ? thread / team : -1, member};
}
// Returns when the whole team has come here.
template <class Real> void meet(const Task<Real>& task, const Share& share) {
  if (share.team >= 0) task.plan.meet(task.plan, share.team);
}
// load_states for a team.
template <class Real>
void load_together(const Task<Real>& task, const Slice& slice, const Space<Real>& space, const Share& share, int64_t step, const Real* checkpoint) {
  meet(task, share);
  if (share.member == 0) load_states<Real>(task, slice, space, step, checkpoint);
  meet(task, share);
}

// The blocks [begin, end) of a panel: x itself, or the products of x and of `from`, which is h or what a cell makes of it,
// and the bias, or what is there already if the inputs were projected ahead.
template <class Real>
void multiply_blocks(const Task<Real>& task, int64_t p, int64_t begin, int64_t end, const Left<Real>& x, const Left<Real>& from, int64_t rows,
                     Real* a) {
  constexpr int64_t width = Tile<Real>::width;
  const CellLayout& layout = task.layout;
  const int64_t right_stride = task.right_rows() * width, result_stride = rows * width;
  const Real* right = task.right + p * layout.blocks * right_stride;
  const Real* right_h = right + (task.right_rows() - task.recurrent_panels * width) * width;
  const Real* bias = task.bias + p * layout.blocks * width;
  auto multiply = [&](int64_t first, int64_t last, Start start, const Left<Real>& one, const Left<Real>& two, const Real* weights) {
    first = larger(first, begin);
    last = smaller(last, end);
    if (first < last)
      product<Real>(start, one, two, rows, last - first, weights + first * right_stride, right_stride, bias + first * width,
                    a + first * result_stride, result_stride, task.scan.hidden - p * width, task.far());
  };
  const Left<Real> none;
  if (task.fused) {
    if (begin < layout.copied) copy_input(task, x.data, rows, p, a);
    multiply(layout.copied, layout.input_begin, Start::bias, none, none, right);
    multiply(layout.input_begin, layout.hidden_begin, Start::bias, x, none, right);
    multiply(layout.hidden_begin, layout.input_end, Start::bias, x, from, right);
  } else {
    multiply(layout.hidden_begin, layout.input_end, Start::result, none, from, right_h);
  }
  multiply(layout.input_end, layout.blocks, Start::bias, none, from, right_h);
}

// Whole panels to where they are kept. A long sequence is not read again before it has left the caches: written past
// them, its lines need not be fetched first.
template <class Real> void keep_panels(Real* kept, const Real* from, int64_t count, bool streamed) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  if (streamed)
    for (int64_t j = 0; j < count; j += lanes) stream(kept + j, load(from + j));
  else
    for (int64_t j = 0; j < count; j += lanes) store(kept + j, load(from + j));
}

// Steps [begin, end) of a slice. Kept values of all these steps go to `kept` if it is not null. Output, final states and
// checkpoints are written unless this is a recomputation.
template <class Real>
void forward_steps(const Task<Real>& task, const Slice& slice, const Space<Real>& space, const Share& share, int64_t begin, int64_t end,
                   Real* kept, bool recomputing, Real* checkpoints) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  const int64_t stride = slice.rows * width;
  const Left<Real> none;
  int64_t block_end = begin, packed_rows = 0;
  const Real* h_previous = space.h[0];
  Real* h_next = space.h[1];
  const bool streamed = !recomputing && task.streams();
  // The entries of h and c that this thread writes out. A projected h is written whole: it has no team.
  const int64_t own_c = share.first_panel * width, end_c = smaller(share.end_panel * width, scan.hidden);
  const int64_t own_h = task.projected ? 0 : own_c, end_h = task.projected ? scan.recurrent : end_c;

  for (int64_t step = begin; step < end; ++step) {
    const int64_t rows = active_rows(slice, step), first_block_step = block_end == step;
    if (first_block_step) {  // pack, and project if there are many, the inputs of the next block of steps
      packed_rows = 0;
      int64_t total = 0;
      for (; block_end < end; ++block_end) {
        int64_t more = active_rows(slice, block_end);
        if (total > 0 && total + more > block_rows) break;
        for (int64_t r = 0; r < more; ++r) pack_input_row<Real>(task, slice, r, block_end, space.input + (total + r) * task.input_row, task.input_row);
        total += more;
      }
      if (!task.fused) {
        Left<Real> x{space.input, input_depth, task.input_row, task.input_row / input_depth, input_depth};
        for (int64_t p = share.first_panel; p < share.end_panel; ++p)
          for (int block = 0; block < layout.input_end; ++block) {
            if (block < layout.copied)
              copy_input<Real>(task, space.input, total, p, space.projection);
            else
              product<Real>(Start::bias, none, block < layout.input_begin ? none : x, total, 1,
                            task.right_input + (p * layout.input_end + block) * task.input_row * width, 0,
                            task.bias + (p * layout.blocks + block) * width, space.projection, 0, scan.hidden - p * width);
            Real* region = space.region;
            const Real* from = space.projection;
            for (int64_t s = step; s < block_end; ++s) {
              int64_t n = active_rows(slice, s);
              __builtin_memcpy(region + (p * layout.blocks + block) * n * width, from, size_t(n * width) * sizeof(Real));
              region += n * task.region_row();
              from += n * width;
            }
          }
      }
    }
    Left<Real> x{space.input + packed_rows * task.input_row, 0, task.input_row, 1, scan.inputs};
    const Left<Real> h = in_panels(h_previous, stride, scan.recurrent), gated = in_panels<Real>(space.gated, stride, scan.hidden);
    // Unless the inputs were projected ahead or some blocks are late, the panels take turns in the same place.
    Real* region = space.region + (task.fused ? 0 : packed_rows * task.region_row());
    const int64_t result_stride = rows * width, panel_stride = task.fused && !task.late() ? 0 : layout.blocks * result_stride;
    auto panel_of = [&](int64_t p) {
      ForwardPanel<Real> panel;
      for (int block = 0; block < most_blocks; ++block)
        panel.a[block] = region + p * panel_stride + (block < layout.blocks ? block : 0) * result_stride;
      panel.h_previous = h_previous + (task.projected ? 0 : p * stride);
      panel.c = space.c + (layout.memory ? p * stride : 0);
      panel.h = task.projected ? space.hidden + p * stride : h_next + p * stride;
      panel.gated = space.gated + (task.late() ? p * stride : 0);
      panel.between = space.between + (task.late() ? p * stride : 0);
      panel.scratch = space.scratch;
      panel.size = result_stride;
      return panel;
    };
    if (task.late()) {
      for (int64_t p = share.first_panel; p < share.end_panel; ++p) {
        multiply_blocks(task, p, 0, layout.late_begin, x, h, rows, region + p * panel_stride);
        const ForwardPanel<Real> panel = panel_of(p);
        task.cell.early(panel, task.parameters);
        clear_lanes(panel.gated, rows, scan.hidden - p * width);
      }
      meet(task, share);
    }
    for (int64_t p = share.first_panel; p < share.end_panel; ++p) {
      if (task.late())
        multiply_blocks(task, p, layout.late_begin, layout.blocks, x, gated, rows, region + p * panel_stride);
      else
        multiply_blocks(task, p, 0, layout.blocks, x, h, rows, region + p * panel_stride);
      const ForwardPanel<Real> panel = panel_of(p);
      task.cell.forward(panel, task.parameters);
      clear_lanes(panel.h, rows, scan.hidden - p * width);
      if (kept) {
        Real* place = kept + p * task.kept_blocks * result_stride;
        keep_panels<Real>(place, panel.a[0], layout.blocks * result_stride, streamed);
        if (layout.memory) keep_panels<Real>(place + layout.blocks * result_stride, panel.c, result_stride, streamed);
      }
      if (scan.cells && !recomputing)
        for (int64_t r = 0; r < rows; ++r)
          panels_to_row(task.typed(scan.cells) + task.place(slice, r, step) * scan.hidden + p * width,
                        panel.c + r * width, 0, smaller(width, scan.hidden - p * width));
    }
    if (task.projected) {
      product_of_columns<Real>(Start::zero, in_panels<Real>(space.hidden, stride, scan.hidden), rows, scan.recurrent, task.right_projection,
                               task.hidden_panels * width * width, h_next, stride);
    }
    if (!recomputing) {
      const int64_t going_on = active_rows(slice, step + 1);
      for (int64_t r = 0; r < rows; ++r) {
        const Real* last = h_next + r * width + own_h / width * stride;
        panels_to_row(task.typed(scan.output) + task.place(slice, r, step) * scan.recurrent + own_h, last, stride, end_h - own_h);
        if (r < going_on) continue;
        panels_to_row(task.typed(scan.final_state[0]) + slice.row[r] * scan.recurrent + own_h, last, stride, end_h - own_h);
        if (layout.memory)
          panels_to_row(task.typed(scan.final_state[1]) + slice.row[r] * scan.hidden + own_c, space.c + share.first_panel * stride + r * width,
                        stride, end_c - own_c);
      }
      if (checkpoints && layout.memory && (step + 1) % scan.segment == 0 && step + 1 < scan.steps)
        __builtin_memcpy(checkpoints + ((step + 1) / scan.segment * task.hidden_panels + share.first_panel) * stride,
                         space.c + share.first_panel * stride,
                         size_t(stride * (share.end_panel - share.first_panel)) * sizeof(Real));
    }
    meet(task, share);
    packed_rows += rows;
    if (kept) kept += rows * task.kept_row();
    const Real* now = h_next;
    h_next = const_cast<Real*>(h_previous);
    h_previous = now;
  }
  if (streamed) finish_streams();
}

// Rows past their length: 0.
template <class Real> void clear_padding(const Arrays<Real>& task, const Slice& slice, Real* array, int64_t features) {
  if (!array || task.scan.starts) return;
  for (int64_t r = 0; r < slice.rows; ++r)
    for (int64_t t = slice.length[r]; t < task.scan.steps; ++t) clear(array + (t * task.scan.batch + slice.row[r]) * features, features);
}

template <class Real> Real* kept_of_slice(const Task<Real>& task, const Slice& slice) {
  const GatedrnnScan& scan = task.scan;
  Real* kept = task.typed(scan.kept);
  if (!kept) return nullptr;
  if (!scan.segment) return kept + slice.first * scan.steps * task.kept_row();
  return kept + slice.first * divide_up(scan.steps, scan.segment) * (task.layout.memory ? task.hidden_panels * Task<Real>::width : 0);
}

template <class Real> void forward_thread(const Task<Real>& task, int64_t thread) {
  const GatedrnnScan& scan = task.scan;
  const Plan& plan = task.plan;
  const Space<Real> space = Space<Real>::of_thread(task, false, thread);
  const Share share = share_of_thread(task, thread);
  for (int64_t s = thread / plan.team; s < plan.slices; s += plan.threads / plan.team) {
    const Slice& slice = plan.slice[s];
    Real* kept = kept_of_slice(task, slice);
    load_together<Real>(task, slice, space, share, 0, nullptr);
    if (share.member == 0 && scan.segment && kept && task.layout.memory) {
      // The first checkpoint is the initial state: all of `kept` is defined.
      __builtin_memcpy(kept, space.c, size_t(slice.rows * task.hidden_panels * Task<Real>::width) * sizeof(Real));
    }
    meet(task, share);
    forward_steps<Real>(task, slice, space, share, 0, slice.length[0], scan.segment ? nullptr : kept, false, scan.segment ? kept : nullptr);
    if (share.member > 0) continue;
    clear_padding(task, slice, task.typed(scan.output), scan.recurrent);
    clear_padding(task, slice, task.typed(scan.cells), scan.hidden);
  }
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
