// Weights into panels, once a call, shared out among the threads.
#pragma once
#include "task.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Panel with rows k < depth: panel[k][lane] = weight[(row + lane) * stride + k], 0 beyond the matrix.
template <class Real>
void pack_transposed(Real* panel, const Real* weight, int64_t row, int64_t rows, int64_t columns, int64_t depth, int64_t stride) {
  constexpr int64_t width = Tile<Real>::width, lanes = Tile<Real>::lanes;
  for (int64_t k = 0; k < depth; k += lanes) {
    const int64_t inside = smaller(larger(columns - k, 0), lanes), count = smaller(depth - k, lanes);
    for (int64_t first = 0; first < width; first += lanes) {
      Vec<Real> square[lanes];
      for (int64_t i = 0; i < lanes; ++i) {
        const Real* from = weight + (row + first + i) * stride + k;
        square[i] = row + first + i < rows && inside > 0 ? load_first(from, inside) : Vec<Real>{};
      }
      transpose<Real>(square);
      for (int64_t j = 0; j < count; ++j) store(panel + (k + j) * width + first, square[j]);
    }
  }
}
template <class Real>
void pack_transposed(Real* panel, const Real* weight, int64_t row, int64_t rows, int64_t columns, int64_t depth) {
  pack_transposed(panel, weight, row, rows, columns, depth, columns);
}

// Panel with rows k < depth: panel[k][lane] = weight[k * stride + column + lane], 0 beyond the matrix.
template <class Real>
void pack_plain(Real* panel, const Real* weight, int64_t rows, int64_t column, int64_t columns, int64_t depth, int64_t stride) {
  constexpr int64_t width = Tile<Real>::width;
  const int64_t count = smaller(width, columns - column), inside = smaller(rows, depth);
  for (int64_t k = 0; k < inside; ++k) row_to_panels(panel + k * width, 0, weight + k * stride + column, count);
  clear(panel + inside * width, (depth - inside) * width);
}
template <class Real>
void pack_plain(Real* panel, const Real* weight, int64_t rows, int64_t column, int64_t columns, int64_t depth) {
  pack_plain(panel, weight, rows, column, columns, depth, columns);
}

template <class Real> const Real* input_weight(const Task<Real>& task, int block) {
  const BlockSource& source = task.layout.source[block];
  return task.weight(source.weight_ih) + source.input * task.scan.hidden * task.scan.inputs;
}
template <class Real> const Real* hidden_weight(const Task<Real>& task, int block) {
  const BlockSource& source = task.layout.source[block];
  return task.weight(source.weight_hh) + source.hidden * task.scan.hidden * task.scan.recurrent;
}

template <class Real> void pack_bias(const Task<Real>& task, int64_t panel, int block) {
  constexpr int64_t width = Tile<Real>::width;
  const BlockSource& source = task.layout.source[block];
  const GatedrnnScan& scan = task.scan;
  Real* bias = task.bias + (panel * task.layout.blocks + block) * width;
  const Real* input = source.input_bias < 0 ? nullptr : task.weight(source.bias_ih);
  const Real* hidden = source.hidden_bias < 0 ? nullptr : task.weight(source.bias_hh);
  for (int64_t lane = 0; lane < width; ++lane) {
    int64_t unit = panel * width + lane;
    Real sum = 0;
    if (unit < scan.hidden && input) sum += input[source.input_bias * scan.hidden + unit];
    if (unit < scan.hidden && hidden) sum += hidden[source.hidden_bias * scan.hidden + unit];
    bias[lane] = sum;
  }
}

// Work is dealt out by panel and block, so that a last panel of few columns does not leave a thread waiting.
template <class Real> bool packs(const Task<Real>& task, int64_t thread, int64_t panel, int block) {
  return (panel * task.layout.blocks + block) % task.plan.threads == thread;
}

template <class Real> void pack_for_forward(const Task<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  if (thread == 0)
    for (int64_t k = 0; k < scan.coefficient_count; ++k) task.coefficients[k] = Real(scan.coefficients[k]);
  int64_t depth = task.recurrent_panels * width, rows = task.right_rows();
  for (int64_t p = 0; p < task.hidden_panels; ++p)
    for (int block = 0; block < layout.blocks; ++block) {
      if (!packs(task, thread, p, block)) continue;
      pack_bias(task, p, block);
      Real* panel = task.right + (p * layout.blocks + block) * rows * width;
      if (block >= layout.input_begin && block < layout.input_end && scan.inputs > 0) {
        const Real* weight = input_weight(task, block);
        if (task.fused)
          pack_transposed(panel, weight, p * width, scan.hidden, scan.inputs, scan.inputs);
        else
          pack_transposed(task.right_input + (p * layout.input_end + block) * task.input_row * width, weight, p * width,
                          scan.hidden, scan.inputs, task.input_row);
      }
      if (block >= layout.hidden_begin)
        pack_transposed(panel + (rows - depth) * width, hidden_weight(task, block), p * width, scan.hidden, scan.recurrent,
                        depth);
    }
  if (task.projected)
    for (int64_t p = thread; p < task.recurrent_panels; p += task.plan.threads)
      pack_transposed(task.right_projection + p * task.hidden_panels * width * width, task.weight(GATEDRNN_WEIGHT_HR), p * width,
                      scan.recurrent, scan.hidden, task.hidden_panels * width);
}

template <class Real> void pack_for_backward(const Task<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const CellLayout& layout = task.layout;
  int64_t H = task.hidden_panels * width, threads = task.plan.threads;
  if (scan.segment)
    pack_for_forward(task, thread);
  else if (thread == 0)
    for (int64_t k = 0; k < scan.coefficient_count; ++k) task.coefficients[k] = Real(scan.coefficients[k]);
  for (int64_t p = 0; p < task.recurrent_panels; ++p)
    for (int block = layout.hidden_begin; block < layout.blocks; ++block)
      if (packs(task, thread, p, block))
        pack_plain(task.back + (p * task.hidden_blocks() + block - layout.hidden_begin) * H * width, hidden_weight(task, block),
                   scan.hidden, p * width, scan.recurrent, H);
  if (scan.grad_input && scan.inputs <= few_input_gradients) {
    for (int64_t i = thread; i < scan.inputs; i += threads)
      for (int block = layout.input_begin; block < layout.input_end; ++block)
        for (int64_t unit = 0; unit < H; ++unit)
          task.back_input[(i * task.input_blocks() + block - layout.input_begin) * H + unit] =
              unit < scan.hidden ? input_weight(task, block)[unit * scan.inputs + i] : Real(0);
  } else if (scan.grad_input) {
    for (int64_t p = 0; p < task.input_panels; ++p)
      for (int block = layout.input_begin; block < layout.input_end; ++block)
        if (packs(task, thread, p, block))
          pack_plain(task.back_input + (p * task.input_blocks() + block - layout.input_begin) * H * width, input_weight(task, block),
                     scan.hidden, p * width, scan.inputs, H);
  }
  if (task.projected)
    for (int64_t p = thread; p < task.hidden_panels; p += threads)
      pack_plain(task.back_projection + p * task.recurrent_panels * width * width, task.weight(GATEDRNN_WEIGHT_HR), scan.recurrent,
                 p * width, scan.hidden, task.recurrent_panels * width);
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
