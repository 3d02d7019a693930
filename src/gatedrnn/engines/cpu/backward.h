// The backward scan of one slice of the batch, and the sum of the threads' weight gradients.
#pragma once
#include "forward.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// The left operands of the weight gradients for one block of steps: h before each step, and [x, 1].
template <class Real>
void pack_left(const Task<Real>& task, const Slice& slice, const Space<Real>& space, int64_t begin, int64_t end, int64_t total) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  int64_t at = 0;
  const int64_t input_stride = total * width, ones = scan.inputs / width * input_stride + scan.inputs % width;
  for (int64_t step = begin; step < end; ++step) {
    int64_t rows = active_rows(slice, step);
    for (int64_t r = 0; r < rows; ++r, ++at) {
      const Real* h = step == 0 ? task.typed(scan.state[0]) + slice.row[r] * scan.recurrent
                                : task.typed(scan.output) + task.place(slice, r, step - 1) * scan.recurrent;
      row_to_panels(space.left_h + at * width, total * width, h, scan.recurrent);
      Real* left = space.left_x + at * width;
      left[ones] = 1;
      if (scan.inputs == 0) continue;
      const Real* x = task.typed(scan.input) + task.place(slice, r, step, scan.input_strides);
      for (int64_t i = 0; i < scan.inputs; ++i) left[i / width * input_stride + i % width] = x[i * scan.input_strides[2]];
    }
  }
}

// Gradient of the input for one block of steps.
template <class Real>
void input_gradient(const Task<Real>& task, const Slice& slice, const Space<Real>& space, int64_t begin, int64_t end, int64_t total) {
  constexpr int64_t width = Tile<Real>::width, lanes = Tile<Real>::lanes;
  const GatedrnnScan& scan = task.scan;
  const int64_t depth = task.input_blocks() * task.hidden_panels;
  const Real* first = space.da + task.layout.input_begin * task.hidden_panels * total * width;
  const Left<Real> none, da{first, total * width, width, depth, width};
  const bool few = scan.inputs <= few_input_gradients;
  for (int64_t p = 0; p < (few ? scan.inputs : task.input_panels); ++p) {
    if (!few)
      product<Real>(Start::zero, none, da, total, 1, task.back_input + p * depth * width * width, 0, nullptr, space.dx, 0);
    int64_t at = 0;
    for (int64_t step = begin; step < end; ++step) {
      int64_t rows = active_rows(slice, step);
      for (int64_t r = 0; r < rows; ++r, ++at) {
        Real* dx = task.typed(scan.grad_input) + task.place(slice, r, step) * scan.inputs;
        if (!few) {
          panels_to_row(dx + p * width, space.dx + at * width, 0, smaller(width, scan.inputs - p * width));
          continue;
        }
        Vec<Real> sum = {};
        for (int64_t q = 0; q < depth; ++q)
          for (int64_t v = 0; v < width; v += lanes)
            sum += load(first + (q * total + at) * width + v) * load(task.back_input + (p * depth + q) * width + v);
        Real scalar = 0;
        for (int64_t v = 0; v < lanes; ++v) scalar += sum[v];
        dx[p] = scalar;
      }
    }
  }
}

template <class Real>
void backward_step(const Task<Real>& task, const Slice& slice, const Space<Real>& space, int64_t step, int64_t rows, int64_t at,
                   int64_t total, const Real* kept, const Real* c_previous, int64_t c_previous_stride) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  const int64_t stride = slice.rows * width, kept_stride = task.kept_blocks * rows * width;
  const Left<Real> none;
  for (int64_t r = 0; r < rows; ++r) {
    if (scan.grad_output)
      add_row_to_panels(space.dh + r * width, stride,
                        task.typed(scan.grad_output) + task.place(slice, r, step, scan.grad_output_strides), scan.recurrent);
    if (scan.grad_cells)
      add_row_to_panels(space.dc + r * width, stride, task.typed(scan.grad_cells) + task.place(slice, r, step, scan.grad_cells_strides),
                        scan.hidden);
  }
  if (task.projected) {
    for (int64_t p = 0; p < task.recurrent_panels; ++p)
      __builtin_memcpy(space.block_dh + (p * total + at) * width, space.dh + p * stride, size_t(rows * width) * sizeof(Real));
    Left<Real> dh{space.dh, stride, width, task.recurrent_panels, width};
    product<Real>(Start::zero, none, dh, rows, task.hidden_panels, task.back_projection, task.recurrent_panels * width * width, nullptr,
                  space.dm, stride);
  }
  for (int64_t p = 0; p < task.hidden_panels; ++p) {
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
    panel.scratch = space.scratch;
    panel.size = rows * width;
    task.cell.backward(panel, task.parameters);
    for (int block = 0; block < layout.blocks; ++block) clear_lanes(panel.da[block], rows, scan.hidden - p * width);
  }
  const int64_t depth = task.hidden_blocks() * task.hidden_panels;
  Left<Real> da{space.da + (layout.hidden_begin * task.hidden_panels * total + at) * width, total * width, width, depth, width};
  product<Real>(task.cell.direct ? Start::result : Start::zero, none, da, rows, task.recurrent_panels, task.back, depth * width * width,
                nullptr, space.dh, stride);
}

// Steps [begin, end) of a slice, whose kept values start at `kept`, block by block from the end: the weight
// gradients of a block are summed while its values are in cache.
template <class Real>
void backward_steps(const Task<Real>& task, const Slice& slice, const Space<Real>& space, int64_t begin, int64_t end, const Real* kept) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  const int64_t stride = slice.rows * width, H = task.hidden_panels * width;
  const int64_t before = rows_before(slice, begin);
  while (end > begin) {
    int64_t first = end, total = 0;
    for (; first > begin; --first) {
      int64_t more = active_rows(slice, first - 1);
      if (total > 0 && total + more > block_rows) break;
      total += more;
    }
    pack_left(task, slice, space, first, end, total);
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
      backward_step(task, slice, space, step, rows, at, total, now, c_previous, c_previous_stride);
    }
    accumulate<Real>(space.left_h, scan.recurrent, space.da + layout.hidden_begin * H * total, task.hidden_blocks() * task.hidden_panels,
                     total, space.total_h);
    accumulate<Real>(space.left_x, scan.inputs + 1, space.da, layout.blocks * task.hidden_panels, total, space.total_x);
    if (task.projected) accumulate<Real>(space.block_dh, scan.recurrent, space.block_h, task.hidden_panels, total, space.total_projection);
    if (scan.grad_input) input_gradient(task, slice, space, first, end, total);
    end = first;
  }
}

template <class Real> void backward_slice(const Task<Real>& task, const Slice& slice, const Space<Real>& space) {
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
    load_states<Real>(task, slice, space, 0, nullptr);
    backward_steps<Real>(task, slice, space, 0, steps, kept);
  } else {
    for (int64_t begin = (steps - 1) / scan.segment * scan.segment; begin >= 0; begin -= scan.segment) {
      const int64_t end = smaller(begin + scan.segment, steps);
      const Real* checkpoint =
          begin > 0 && task.layout.memory ? kept + begin / scan.segment * stride * task.hidden_panels : nullptr;
      load_states<Real>(task, slice, space, begin, checkpoint);
      forward_steps<Real>(task, slice, space, {0, task.hidden_panels, -1}, begin, end, space.segment, true, nullptr);
      load_states<Real>(task, slice, space, begin, checkpoint);  // c before the segment, once more
      backward_steps<Real>(task, slice, space, begin, end, space.segment);
    }
  }
  for (int64_t r = 0; r < slice.rows; ++r) {
    panels_to_row(task.typed(scan.grad_state[0]) + slice.row[r] * scan.recurrent, space.dh + r * width, stride, scan.recurrent);
    if (task.layout.memory)
      panels_to_row(task.typed(scan.grad_state[1]) + slice.row[r] * scan.hidden, space.dc + r * width, stride, scan.hidden);
  }
  clear_padding(task, slice, task.typed(scan.grad_input), scan.inputs);
}

template <class Real> void backward_thread(const Task<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  Space<Real> space(task, true, task.thread_space + thread * task.thread_bytes);
  const GatedrnnScan& scan = task.scan;
  const int64_t H = task.hidden_panels * width;
  clear(space.total_h, scan.recurrent * task.hidden_blocks() * H);
  clear(space.total_x, (scan.inputs + 1) * task.layout.blocks * H);
  if (task.projected) clear(space.total_projection, scan.recurrent * H);
  for (int64_t s = thread; s < task.plan.slices; s += task.plan.threads) backward_slice(task, task.plan.slice[s], space);
}

// The threads' totals (panels of units with a row for each column, `thread_bytes` apart) summed in the order of the
// threads: weight[unit * unit_stride + column * column_stride], for the columns [begin, end) of `rows` of them that
// this thread takes.
template <class Real>
void reduce_block(const Task<Real>& task, int64_t thread, const Real* totals, int64_t rows, int64_t begin, int64_t end, Real* weight,
                  int64_t unit_stride, int64_t column_stride) {
  constexpr int64_t width = Tile<Real>::width, some = 16;  // columns gathered at a time, so that neither side is strided
  for (int64_t p = 0; p < task.hidden_panels; ++p)
    for (int64_t column = begin + thread * some; column < end; column += task.plan.threads * some) {
      Real sums[width][some];
      const int64_t units = smaller(width, task.scan.hidden - p * width), columns = smaller(some, end - column);
      for (int64_t j = 0; j < columns; ++j) {
        const Real* total = totals + (p * rows + column + j) * width;
        for (int64_t i = 0; i < units; ++i) sums[i][j] = total[i];
        for (int64_t t = 1; t < task.plan.threads; ++t) {
          const Real* other = reinterpret_cast<const Real*>(reinterpret_cast<const char*>(total) + t * task.thread_bytes);
          for (int64_t i = 0; i < units; ++i) sums[i][j] += other[i];
        }
      }
      for (int64_t i = 0; i < units; ++i)
        for (int64_t j = 0; j < columns; ++j)
          weight[(p * width + i) * unit_stride + (column - begin + j) * column_stride] = sums[i][j];
    }
}

template <class Real> void reduce_thread(const Task<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  const Space<Real> space(task, true, task.thread_space);
  const int64_t H = task.hidden_panels * width, h = scan.hidden, inputs = scan.inputs, recurrent = scan.recurrent;
  for (int block = 0; block < layout.blocks; ++block) {
    const BlockSource& source = layout.source[block];
    const Real* total_x = space.total_x + block * H * (inputs + 1);  // the last column is the bias
    if (source.hidden >= 0) {
      Real* weight = task.typed(scan.grad_weights[source.weight_hh]) + source.hidden * h * recurrent;
      reduce_block<Real>(task, thread, space.total_h + (block - layout.hidden_begin) * H * recurrent, recurrent, 0, recurrent, weight,
                         recurrent, 1);
    }
    if (source.input >= 0 && inputs > 0) {
      Real* weight = task.typed(scan.grad_weights[source.weight_ih]) + source.input * h * inputs;
      reduce_block<Real>(task, thread, total_x, inputs + 1, 0, inputs, weight, inputs, 1);
    }
    const struct {
      GatedrnnWeight place;
      int row;
    } biases[] = {{source.bias_ih, source.input_bias}, {source.bias_hh, source.hidden_bias}};
    for (const auto& bias : biases)
      if (bias.row >= 0 && scan.grad_weights[bias.place])
        reduce_block<Real>(task, thread, total_x, inputs + 1, inputs, inputs + 1, task.typed(scan.grad_weights[bias.place]) + bias.row * h, 1,
                           0);
  }
  if (task.projected)  // (recurrent, hidden): a row for each column of the totals
    reduce_block<Real>(task, thread, space.total_projection, recurrent, 0, recurrent, task.typed(scan.grad_weights[GATEDRNN_WEIGHT_HR]), 1, h);
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
