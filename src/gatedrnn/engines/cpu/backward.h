// The backward scan of one slice of the batch, and the sum of the threads' weight gradients.
#pragma once
#include "forward.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// The left operands of the weight gradients for one block of steps: h before each step, and [x, 1]. The members of a team
// take turns.
template <class Real>
void pack_left(const Task<Real>& task, const Slice& slice, const Space<Real>& space, const Share& share, int64_t begin, int64_t end,
               int64_t total) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  int64_t at = 0;
  const int64_t input_stride = total * width, ones = scan.inputs / width * input_stride + scan.inputs % width;
  for (int64_t step = begin; step < end; ++step) {
    int64_t rows = active_rows(slice, step);
    for (int64_t r = 0; r < rows; ++r, ++at) {
      if (at % task.plan.team != share.member) continue;
      row_to_panels(space.left_h + at * width, total * width, task.h_before(slice, r, step), scan.recurrent);
      Real* left = space.left_x + at * width;
      left[ones] = 1;
      if (scan.inputs == 0) continue;
      const Real* x = task.typed(scan.input) + task.place(slice, r, step, scan.input_strides);
      for (int64_t i = 0; i < scan.inputs; ++i) left[i / width * input_stride + i % width] = x[i * scan.input_strides[2]];
    }
  }
}

// Gradient of the input for one block of steps; the members of a team take turns.
template <class Real>
void input_gradient(const Task<Real>& task, const Slice& slice, const Space<Real>& space, const Share& share, int64_t begin, int64_t end,
                    int64_t total) {
  constexpr int64_t width = Tile<Real>::width, lanes = Tile<Real>::lanes;
  const GatedrnnScan& scan = task.scan;
  const int64_t depth = task.input_blocks() * task.hidden_panels;
  const Real* first = space.da + task.layout.input_begin * task.hidden_panels * total * width;
  const Left<Real> none, da = in_panels(first, total * width, scan.hidden, task.input_blocks());
  const bool few = scan.inputs <= few_input_gradients;
  // Of a block that is the input itself, the gradient is part of the input's. The rest is added to it in its place.
  Real* const itself = task.layout.copied ? space.da : nullptr;
  for (int64_t p = share.member; p < (few ? scan.inputs : task.input_panels); p += task.plan.team) {
    Real* const panel = itself && !few ? itself + p * total * width : space.dx;
    if (!few)
      product<Real>(itself ? Start::result : Start::zero, none, da, total, 1, task.back_input + p * depth * width * width, 0, nullptr, panel, 0,
                    scan.inputs - p * width);
    int64_t at = 0;
    for (int64_t step = begin; step < end; ++step) {
      int64_t rows = active_rows(slice, step);
      for (int64_t r = 0; r < rows; ++r, ++at) {
        Real* dx = task.typed(scan.grad_input) + task.place(slice, r, step) * scan.inputs;
        if (!few) {
          panels_to_row(dx + p * width, panel + at * width, 0, smaller(width, scan.inputs - p * width));
          continue;
        }
        Vec<Real> sum = {};
        for (int64_t q = 0; q < depth; ++q)
          for (int64_t v = 0; v < width; v += lanes)
            sum += load(first + (q * total + at) * width + v) * load(task.back_input + (p * depth + q) * width + v);
        Real scalar = itself ? itself[at * width + p] : Real(0);
        for (int64_t v = 0; v < lanes; ++v) scalar += sum[v];
        dx[p] = scalar;
      }
    }
  }
}

template <class Real>
void backward_step(const Task<Real>& task, const Slice& slice, const Space<Real>& space, const Share& share, int64_t step, int64_t rows,
                   int64_t at, int64_t total, const Real* kept, const Real* c_previous, int64_t c_previous_stride) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  const int64_t stride = slice.rows * width, kept_stride = task.kept_blocks * rows * width;
  // The entries of h and c whose gradients are this thread's. A projected h has no team.
  const int64_t own_c = share.first_panel * width, end_c = smaller(share.end_panel * width, scan.hidden);
  const int64_t own_h = task.projected ? 0 : own_c, end_h = task.projected ? scan.recurrent : end_c;
  for (int64_t r = 0; r < rows; ++r) {
    if (scan.grad_output)
      add_row_to_panels(space.dh + own_h / width * stride + r * width, stride,
                        task.typed(scan.grad_output) + task.place(slice, r, step, scan.grad_output_strides) + own_h, end_h - own_h);
    if (scan.grad_cells)
      add_row_to_panels(space.dc + share.first_panel * stride + r * width, stride,
                        task.typed(scan.grad_cells) + task.place(slice, r, step, scan.grad_cells_strides) + own_c, end_c - own_c);
  }
  if (task.projected) {
    for (int64_t p = 0; p < task.recurrent_panels; ++p)
      __builtin_memcpy(space.block_dh + (p * total + at) * width, space.dh + p * stride, size_t(rows * width) * sizeof(Real));
    product_of_columns<Real>(Start::zero, in_panels<Real>(space.dh, stride, scan.recurrent), rows, scan.hidden, task.back_projection,
                             task.recurrent_panels * width * width, space.dm, stride);
  }
  auto stage = [&](BackwardStage<Real> function) {
    for (int64_t p = share.first_panel; p < share.end_panel; ++p) {
      BackwardPanel<Real> panel;
      for (int b = 0; b < most_blocks; ++b) {
        int block = b < layout.blocks ? b : 0;
        panel.a[b] = kept + p * kept_stride + block * rows * width;
        panel.da[b] = space.da + ((block * task.hidden_panels + p) * total + at) * width;
      }
      panel.h_previous = space.left_h + (task.projected ? 0 : (p * total + at) * width);
      panel.c = kept + p * kept_stride + (task.kept_blocks - 1) * rows * width;
      panel.c_previous = c_previous + (layout.memory ? p * c_previous_stride : 0);
      panel.dh = (task.projected ? space.dm : space.dh) + p * stride;
      panel.dc = space.dc + (layout.memory ? p * stride : 0);
      panel.h = task.projected ? space.block_h + (p * total + at) * width : nullptr;
      const int64_t late = task.late() ? p * stride : 0;
      panel.gated = space.left_gated + (task.late() ? (p * total + at) * width : 0);
      panel.dgated = space.dgated + late;
      panel.between = space.between + late;
      panel.partial = space.partial + late;
      panel.scratch = space.scratch;
      panel.size = rows * width;
      function(panel, task.parameters);
      for (int block = 0; block < layout.blocks; ++block) clear_lanes(panel.da[block], rows, scan.hidden - p * width);
    }
    meet(task, share);
  };
  // result = start + the gradients of the blocks [begin, end) times their weights, for this thread's panels.
  const int64_t all = task.hidden_blocks() * task.hidden_panels * width * width;
  const int64_t first = task.projected ? 0 : share.first_panel;
  auto multiply = [&](Start start, int begin, int end, Real* result) {
    const Left<Real> da =
        in_panels<Real>(space.da + (begin * task.hidden_panels * total + at) * width, total * width, scan.hidden, end - begin);
    product_of_columns<Real>(start, da, rows, end_h - own_h,
                             task.back + first * all + (begin - layout.hidden_begin) * task.hidden_panels * width * width, all,
                             result + first * stride, stride, task.far());
  };
  stage(task.cell.backward);
  if (task.late()) {
    multiply(Start::zero, layout.late_begin, layout.blocks, space.dgated);
    stage(task.cell.late);
  }
  multiply(task.cell.direct ? Start::result : Start::zero, layout.hidden_begin, layout.late_begin, space.dh);
}

// The sums of a block's weight gradient from [x, 1]: panels of units with a row for each column.
template <class Real> Real* total_from_input(const Task<Real>& task, const Space<Real>& space, int block) {
  return space.total_x + task.columns_before(block) * task.hidden_panels * Tile<Real>::width;
}

// Adds the weight gradients of a block of steps to this thread's totals: those of its own panels.
template <class Real> void add_to_totals(const Task<Real>& task, const Space<Real>& space, const Share& share, int64_t total) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  const int64_t units = smaller(share.end_panel * width, scan.hidden) - share.first_panel * width;
  for (int block = 0; block < layout.blocks; ++block) {
    const int64_t panel = block * task.hidden_panels + share.first_panel;
    const Real* da = space.da + panel * total * width;
    if (block >= layout.hidden_begin)
      accumulate<Real>(block < layout.late_begin ? space.left_h : space.left_gated, scan.recurrent, da, units, total,
                       space.total_h + (panel - layout.hidden_begin * task.hidden_panels) * scan.recurrent * width);
    const int64_t columns = task.columns_from_input(block), skipped = scan.inputs + 1 - columns;
    if (columns > 0)
      accumulate<Real>(space.left_x + skipped / width * total * width + skipped % width, columns, da, units, total,
                       total_from_input(task, space, block) + share.first_panel * columns * width);
  }
  if (task.projected) accumulate<Real>(space.block_dh, scan.recurrent, space.block_h, scan.hidden, total, space.total_projection);
}

// Steps [begin, end) of a slice, whose kept values start at `kept`, block by block from the end: the weight
// gradients of a block are summed while its values are in cache.
template <class Real>
void backward_steps(const Task<Real>& task, const Slice& slice, const Space<Real>& space, const Share& share, int64_t begin, int64_t end,
                    const Real* kept) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  const int64_t stride = slice.rows * width;
  const int64_t before = rows_before(slice, begin);
  while (end > begin) {
    int64_t first = end, total = 0;
    for (; first > begin; --first) {
      int64_t more = active_rows(slice, first - 1);
      if (total > 0 && total + more > block_rows) break;
      total += more;
    }
    meet(task, share);  // what is packed now, others may still read
    pack_left(task, slice, space, share, first, end, total);
    meet(task, share);
    int64_t kept_rows = rows_before(slice, first) - before, at = total;
    for (int64_t step = end; step-- > first;) {
      const int64_t rows = active_rows(slice, step), rows_previous = step > begin ? active_rows(slice, step - 1) : 0;
      at -= rows;
      const Real* now = kept + (kept_rows + at) * task.kept_row();
      const Real* c_previous = space.c;
      int64_t c_previous_stride = stride;
      if (step > begin && layout.memory) {
        c_previous = now - rows_previous * task.kept_row() + layout.blocks * rows_previous * width;
        c_previous_stride = task.kept_blocks * rows_previous * width;
      }
      backward_step(task, slice, space, share, step, rows, at, total, now, c_previous, c_previous_stride);
    }
    add_to_totals(task, space, share, total);
    if (scan.grad_input) input_gradient(task, slice, space, share, first, end, total);
    end = first;
  }
}

template <class Real> void backward_slice(const Task<Real>& task, const Slice& slice, const Space<Real>& space, const Share& share) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const int64_t stride = slice.rows * width, steps = slice.length[0];
  clear(space.dh, stride * task.recurrent_panels);
  if (task.layout.memory) clear(space.dc, stride * task.hidden_panels);
  for (int64_t r = 0; r < slice.rows; ++r) {
    if (scan.grad_final_state[0])
      row_to_panels(space.dh + r * width, stride, task.typed(scan.grad_final_state[0]) + slice.row[r] * scan.recurrent, scan.recurrent);
    if (scan.grad_final_state[1] && task.layout.memory)
      row_to_panels(space.dc + r * width, stride, task.typed(scan.grad_final_state[1]) + slice.row[r] * scan.hidden, scan.hidden);
  }
  const Real* kept = kept_of_slice(task, slice);
  if (!scan.segment) {
    load_together<Real>(task, slice, space, share, 0, nullptr);
    backward_steps<Real>(task, slice, space, share, 0, steps, kept);
  } else {
    for (int64_t begin = (steps - 1) / scan.segment * scan.segment; begin >= 0; begin -= scan.segment) {
      const int64_t end = smaller(begin + scan.segment, steps);
      const Real* checkpoint =
          begin > 0 && task.layout.memory ? kept + begin / scan.segment * stride * task.hidden_panels : nullptr;
      load_together<Real>(task, slice, space, share, begin, checkpoint);
      forward_steps<Real>(task, slice, space, share, begin, end, space.segment, true, nullptr);
      load_together<Real>(task, slice, space, share, begin, checkpoint);  // c before the segment, once more
      backward_steps<Real>(task, slice, space, share, begin, end, space.segment);
    }
  }
  // The entries of h and c whose gradients are this thread's, as in backward_step.
  const int64_t own_c = share.first_panel * width, end_c = smaller(share.end_panel * width, scan.hidden);
  const int64_t own_h = task.projected ? 0 : own_c, end_h = task.projected ? scan.recurrent : end_c;
  for (int64_t r = 0; r < slice.rows; ++r) {
    panels_to_row(task.typed(scan.grad_state[0]) + slice.row[r] * scan.recurrent + own_h, space.dh + own_h / width * stride + r * width, stride,
                  end_h - own_h);
    if (task.layout.memory)
      panels_to_row(task.typed(scan.grad_state[1]) + slice.row[r] * scan.hidden + own_c, space.dc + share.first_panel * stride + r * width, stride,
                    end_c - own_c);
  }
  if (share.member == 0) clear_padding(task, slice, task.typed(scan.grad_input), scan.inputs);
}

template <class Real> void backward_thread(const Task<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const Space<Real> space = Space<Real>::of_thread(task, true, thread);
  const Share share = share_of_thread(task, thread);
  const GatedrnnScan& scan = task.scan;
  const Plan& plan = task.plan;
  for (int block = 0; block < task.layout.blocks; ++block) {
    const int64_t panel = block * task.hidden_panels + share.first_panel, size = share.panels() * width, columns = task.columns_from_input(block);
    if (block >= task.layout.hidden_begin)
      clear(space.total_h + (panel - task.layout.hidden_begin * task.hidden_panels) * scan.recurrent * width, scan.recurrent * size);
    clear(total_from_input(task, space, block) + share.first_panel * columns * width, columns * size);
  }
  if (task.projected) clear(space.total_projection, scan.recurrent * task.hidden_panels * width);
  for (int64_t s = thread / plan.team; s < plan.slices; s += plan.threads / plan.team) backward_slice(task, plan.slice[s], space, share);
}

// Which totals are summed: panels of units, a copy for each thread or team.
struct Reduction {
  const Plan& plan;
  int64_t thread, thread_bytes, panels, units;
};

// The totals (panels of units with a row for each column) summed in the order of the threads, for the columns [begin, end) of
// `rows` of them that this thread takes. Rows of the weight are units, `stride` apart, or the columns.
template <class Real>
void reduce_block(const Reduction& sum, const Real* totals, int64_t rows, int64_t begin, int64_t end, Real* weight, int64_t stride,
                  bool rows_are_units) {
  constexpr int64_t width = Tile<Real>::width, lanes = Tile<Real>::lanes;
  for (int64_t p = 0; p < sum.panels; ++p)
    for (int64_t column = begin + sum.thread * lanes; column < end; column += sum.plan.threads * lanes) {
      const int64_t units = smaller(width, sum.units - p * width), columns = smaller(lanes, end - column);
      for (int64_t first = 0; first < units; first += lanes) {
        const int64_t unit = p * width + first, some = smaller(lanes, units - first);
        Vec<Real> sums[lanes] = {};
        for (int64_t j = 0; j < columns; ++j) {
          const Real* total = totals + (p * rows + column + j) * width + first;
          sums[j] = load(total);
          for (int64_t t = sum.plan.team; t < sum.plan.threads; t += sum.plan.team)
            sums[j] += load(reinterpret_cast<const Real*>(reinterpret_cast<const char*>(total) + t * sum.thread_bytes));
        }
        if (rows_are_units) {
          transpose<Real>(sums);
          for (int64_t i = 0; i < some; ++i) store_first(weight + (unit + i) * stride + column - begin, sums[i], columns);
        } else {
          for (int64_t j = 0; j < columns; ++j) store_first(weight + (column - begin + j) * stride + unit, sums[j], some);
        }
      }
    }
}

template <class Real> void reduce_thread(const Task<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  const Space<Real> space(task, true, task.thread_space);
  const Reduction sum{task.plan, thread, task.thread_bytes, task.hidden_panels, scan.hidden};
  const int64_t H = task.hidden_panels * width, h = scan.hidden, inputs = scan.inputs, recurrent = scan.recurrent;
  for (int block = 0; block < layout.blocks; ++block) {
    const BlockSource& source = layout.source[block];
    const int64_t columns = task.columns_from_input(block);  // the last one is the bias
    const Real* total_x = total_from_input(task, space, block);
    if (source.hidden >= 0) {
      Real* weight = task.typed(scan.grad_weights[source.weight_hh]) + source.hidden * h * recurrent;
      reduce_block<Real>(sum, space.total_h + (block - layout.hidden_begin) * H * recurrent, recurrent, 0, recurrent, weight,
                         recurrent, true);
    }
    if (source.input >= 0 && inputs > 0) {
      Real* weight = task.typed(scan.grad_weights[source.weight_ih]) + source.input * h * inputs;
      reduce_block<Real>(sum, total_x, columns, 0, inputs, weight, inputs, true);
    }
    const struct {
      GatedrnnWeight place;
      int row;
    } biases[] = {{source.bias_ih, source.input_bias}, {source.bias_hh, source.hidden_bias}};
    for (const auto& bias : biases)
      if (bias.row >= 0 && scan.grad_weights[bias.place])
        reduce_block<Real>(sum, total_x, columns, columns - 1, columns, task.typed(scan.grad_weights[bias.place]) + bias.row * h, 0, false);
  }
  if (task.projected)  // (recurrent, hidden): a row for each column of the totals
    reduce_block<Real>(sum, space.total_projection, recurrent, 0, recurrent, task.typed(scan.grad_weights[GATEDRNN_WEIGHT_HR]), h, false);
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
