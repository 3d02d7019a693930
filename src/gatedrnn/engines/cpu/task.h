// A call seen by the kernels of one instruction set: typed pointers, sizes in panels, and the workspace.
#pragma once
#include "cells.h"
#include "gemm.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Hands out pieces of a workspace; with a null base it only measures.
class Arena {
 public:
  explicit Arena(char* base) : base_(base) {}
  template <class Real> Real* take(int64_t count) {
    int64_t at = used_;
    used_ += (count * int64_t(sizeof(Real)) + 63) / 64 * 64;
    return base_ ? reinterpret_cast<Real*>(base_ + at) : nullptr;
  }
  int64_t used() const { return used_; }

 private:
  char* base_;
  int64_t used_ = 0;
};

// Rows that a block of time steps should have: enough for the weight-gradient products to run at full speed,
// few enough to stay in cache.
constexpr int64_t block_rows = 192;
// Up to this many inputs are multiplied together with h, step by step; more are projected a block of steps ahead.
constexpr int64_t few_inputs = 32;
// Up to this many inputs get their gradient by dot products: a panel would be mostly padding.
constexpr int64_t few_input_gradients = 4;
constexpr int64_t input_depth = 16;  // the input's panel depth where it is projected ahead

// The arrays of a scan, typed, and the position of a row of a slice in them.
template <class Real> struct Arrays {
  static constexpr int width = Tile<Real>::width;
  const GatedrnnScan& scan;
  const Plan& plan;

  explicit Arrays(const Call& call) : scan(*call.scan), plan(*call.plan) {}
  const Real* typed(const void* p) const { return static_cast<const Real*>(p); }
  Real* typed(void* p) const { return static_cast<Real*>(p); }
  const Real* weight(GatedrnnWeight place) const { return typed(scan.weights[place]); }
  int64_t time(const Slice& slice, int64_t row, int64_t step) const {
    return scan.reverse ? slice.length[row] - 1 - step : step;
  }
  // The position of a row of the slice at a step among all rows of an array, contiguous or with strides.
  int64_t place(const Slice& slice, int64_t row, int64_t step) const {
    const int64_t t = time(slice, row, step);
    return (scan.starts ? scan.starts[t] : t * scan.batch) + slice.row[row];
  }
  int64_t place(const Slice& slice, int64_t row, int64_t step, const int64_t* strides) const {
    const int64_t t = time(slice, row, step);
    return scan.starts ? (scan.starts[t] + slice.row[row]) * strides[1] : t * strides[0] + slice.row[row] * strides[1];
  }
  // h of a row before a step: the one given, or the output of the step before.
  const Real* h_before(const Slice& slice, int64_t row, int64_t step) const {
    return step == 0 ? typed(scan.state[0]) + slice.row[row] * scan.recurrent
                     : typed(scan.output) + place(slice, row, step - 1) * scan.recurrent;
  }
};

template <class Real> struct Task : Arrays<Real> {
  using Arrays<Real>::width;
  using Arrays<Real>::scan;
  using Arrays<Real>::plan;
  const CellLayout& layout;
  int64_t hidden_panels, recurrent_panels, input_panels;  // input_panels: of the gradient, without the bias column
  bool projected, fused;                                  // fused: few inputs
  int64_t input_row;                                      // stride of a packed input row
  int64_t kept_blocks;                                    // blocks of a kept step, the memory last
  CellKernel<Real> cell;
  CellParameters<Real> parameters;

  // Weights in panels, shared by all threads.
  Real* coefficients;
  Real* right;         // [hidden panel][block][input then hidden rows][width]
  Real* right_input;   // [hidden panel][block][input rows][width] unless fused
  Real* bias;          // [hidden panel][block][width]
  Real* right_projection;       // [recurrent panel][hidden rows][width]
  Real* back;                   // [recurrent panel][hidden block, hidden rows][width]
  Real* back_input;             // [input panel][input block, hidden rows][width], or [input][...] for few
  Real* back_projection;        // [hidden panel][recurrent rows][width]
  char* thread_space;
  int64_t thread_bytes, total_bytes;

  explicit Task(const Call& call, bool backward);

  int64_t right_rows() const { return (fused ? scan.inputs : 0) + recurrent_panels * width; }
  int64_t hidden_blocks() const { return layout.blocks - layout.hidden_begin; }
  bool late() const { return layout.late_begin < layout.blocks; }
  int64_t input_blocks() const { return layout.input_end - layout.input_begin; }
  // Columns of a block's weight gradient from [x, 1]: inputs and bias, the bias alone, or none.
  int64_t columns_from_input(int block) const {
    if (block < layout.copied) return 0;
    return block >= layout.input_begin && block < layout.input_end ? scan.inputs + 1 : 1;
  }
  int64_t columns_before(int block) const {
    int64_t sum = 0;
    for (int b = 0; b < block; ++b) sum += columns_from_input(b);
    return sum;
  }
  int64_t region_row() const { return layout.blocks * hidden_panels * width; }
  // More than the last cache holds of what is kept, and in a place where whole vectors can be written.
  bool streams() const {
    constexpr int64_t cached_bytes = 16 << 20;
    return scan.kept && !scan.segment && scan.kept_size * int64_t(sizeof(Real)) > cached_bytes &&
           reinterpret_cast<uintptr_t>(scan.kept) % GATEDRNN_VECTOR_BYTES == 0;
  }
  // A thread reads more weights at each step than the second cache holds.
  bool far() const {
    constexpr int64_t cached_bytes = 1 << 20;
    return hidden_blocks() * hidden_panels * recurrent_panels * width * width * int64_t(sizeof(Real)) / plan.team > cached_bytes;
  }
  int64_t kept_row() const { return kept_blocks * hidden_panels * width; }
};

// One thread's workspace.
template <class Real> struct Space {
  Real *input, *h[2], *c, *gated, *between, *hidden, *region, *projection, *scratch;
  // Backward only.
  Real *left_h, *left_x, *left_gated, *da, *dh, *dc, *dm, *dgated, *partial, *block_h, *block_dh, *dx, *total_h, *total_x, *total_projection,
      *segment;
  int64_t bytes;

  // The workspace of a thread of the call. A team has one copy, the first member's, of what its members make together.
  static Space of_thread(const Task<Real>& task, bool backward, int64_t thread) {
    const int64_t first = thread - thread % task.plan.team;
    Space own(task, backward, task.thread_space + thread * task.thread_bytes);
    const Space shared(task, backward, task.thread_space + first * task.thread_bytes);
    Real* Space::*const parts[] = {&Space::c,  &Space::gated,   &Space::left_h,  &Space::left_x, &Space::left_gated,
                                   &Space::da, &Space::total_h, &Space::total_x, &Space::segment};
    for (Real* Space::*part : parts) own.*part = shared.*part;
    for (int i = 0; i < 2; ++i) own.h[i] = shared.h[i];
    return own;
  }

  Space(const Task<Real>& task, bool backward, char* base) {
    constexpr int64_t width = Task<Real>::width;
    const GatedrnnScan& scan = task.scan;
    Arena arena(base);
    int64_t rows = task.plan.most_rows, block = larger(rows, block_rows);
    int64_t H = task.hidden_panels * width, R = task.recurrent_panels * width;
    input = arena.take<Real>(block * task.input_row);
    for (Real*& state : h) state = arena.take<Real>(rows * R);
    c = arena.take<Real>(task.layout.memory ? rows * H : 0);
    gated = arena.take<Real>(task.late() ? rows * H : 0);
    between = arena.take<Real>(task.late() ? rows * H : 0);
    hidden = arena.take<Real>(task.projected ? rows * H : 0);
    // Room for one panel of pre-activations, for all of them if some are late, or for a block of steps if projected ahead.
    const bool forward = !backward || scan.segment;
    const int64_t some = rows * task.layout.blocks * (task.late() ? H : width);
    region = arena.take<Real>(!forward ? 0 : task.fused ? some : block * task.region_row());
    projection = arena.take<Real>(task.fused ? 0 : block * width);
    scratch = arena.take<Real>(program_scratch<Real>(task.plan.program, rows * width));
    left_h = left_x = left_gated = da = total_h = total_x = segment = nullptr;
    if (backward) {
      int64_t blocks = task.layout.blocks;
      left_h = arena.take<Real>(block * R);
      left_gated = arena.take<Real>(task.late() ? block * H : 0);
      left_x = arena.take<Real>(block * divide_up(scan.inputs + 1, width) * width);
      da = arena.take<Real>(block * blocks * H);
      dh = arena.take<Real>(rows * R);
      dc = arena.take<Real>(task.layout.memory ? rows * H : 0);
      dm = arena.take<Real>(task.projected ? rows * H : 0);
      dgated = arena.take<Real>(task.late() ? rows * H : 0);
      partial = arena.take<Real>(task.late() ? rows * H : 0);
      block_h = arena.take<Real>(task.projected ? block * H : 0);
      block_dh = arena.take<Real>(task.projected ? block * R : 0);
      dx = arena.take<Real>(scan.grad_input ? block * width : 0);
      total_h = arena.take<Real>(scan.recurrent * task.hidden_blocks() * H);
      total_x = arena.take<Real>(task.columns_before(task.layout.blocks) * H);
      total_projection = arena.take<Real>(task.projected ? scan.recurrent * H : 0);
      segment = arena.take<Real>(scan.segment ? smaller(scan.segment, scan.steps) * rows * task.kept_row() : 0);
    }
    bytes = arena.used();
  }
};

template <class Real>
Task<Real>::Task(const Call& call, bool backward) : Arrays<Real>(call), layout(call.plan->layout) {
  hidden_panels = divide_up(scan.hidden, width);
  recurrent_panels = divide_up(scan.recurrent, width);
  input_panels = divide_up(scan.inputs, width);
  projected = scan.weights[GATEDRNN_WEIGHT_HR] != nullptr;
  fused = scan.inputs <= few_inputs;
  input_row = fused ? scan.inputs : divide_up(scan.inputs, input_depth) * input_depth;
  kept_blocks = layout.blocks + (layout.memory ? 1 : 0);
  cell = kernel_of<Real>(GatedrnnCell(scan.cell), GatedrnnGate(scan.gate));
  Arena arena(call.space);
  int64_t H = hidden_panels * width, R = recurrent_panels * width;
  bool forward = !backward || scan.segment;
  coefficients = arena.take<Real>(scan.coefficient_count + 1);
  right = arena.take<Real>(forward ? layout.blocks * H * right_rows() : 0);
  right_input = arena.take<Real>(forward && !fused ? layout.input_end * H * input_row : 0);
  bias = arena.take<Real>(forward ? layout.blocks * H : 0);
  right_projection = arena.take<Real>(forward && projected ? R * H : 0);
  back = arena.take<Real>(backward ? R * hidden_blocks() * H : 0);
  bool few = scan.inputs <= few_input_gradients;
  back_input = arena.take<Real>(backward && scan.grad_input ? (few ? scan.inputs : input_panels * width) * input_blocks() * H : 0);
  back_projection = arena.take<Real>(backward && projected ? R * H : 0);
  parameters = {{coefficients, scan.coefficient_count, plan.program}, Real(scan.odds)};
  int64_t shared = arena.used();
  thread_bytes = Space<Real>(*this, backward, nullptr).bytes;
  thread_space = call.space ? call.space + shared : nullptr;
  total_bytes = shared + thread_bytes * plan.threads;
}

// Copies of one row between the caller's layout and panels. The padding of the last panel is set to 0.
template <class Real> inline void row_to_panels(Real* panels, int64_t panel_stride, const Real* row, int64_t count) {
  constexpr int64_t width = Tile<Real>::width, lanes = Tile<Real>::lanes;
  for (; count >= width; count -= width, row += width, panels += panel_stride)
    for (int64_t v = 0; v < width; v += lanes) store(panels + v, load(row + v));
  if (count > 0)
    for (int64_t j = 0; j < width; ++j) panels[j] = j < count ? row[j] : Real(0);
}
template <class Real> inline void panels_to_row(Real* row, const Real* panels, int64_t panel_stride, int64_t count) {
  constexpr int64_t width = Tile<Real>::width, lanes = Tile<Real>::lanes;
  for (; count >= width; count -= width, row += width, panels += panel_stride)
    for (int64_t v = 0; v < width; v += lanes) store(row + v, load(panels + v));
  for (int64_t j = 0; j < count; ++j) row[j] = panels[j];
}
template <class Real> inline void add_row_to_panels(Real* panels, int64_t panel_stride, const Real* row, int64_t count) {
  constexpr int64_t width = Tile<Real>::width, lanes = Tile<Real>::lanes;
  for (; count >= width; count -= width, row += width, panels += panel_stride)
    for (int64_t v = 0; v < width; v += lanes) store(panels + v, load<Real>(panels + v) + load(row + v));
  for (int64_t j = 0; j < count; ++j) panels[j] += row[j];
}
// The padding of a partly filled panel multiplies zero weights, so it must not hold a NaN or an infinity.
template <class Real> inline void clear_lanes(Real* panel, int64_t rows, int64_t used) {
  constexpr int64_t width = Tile<Real>::width;
  if (used >= width) return;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = used; j < width; ++j) panel[r * width + j] = 0;
}
template <class Real> inline void clear(Real* p, int64_t count) { __builtin_memset(p, 0, size_t(count) * sizeof(Real)); }

inline int64_t active_rows(const Slice& slice, int64_t step) {
  int64_t n = slice.rows;
  while (n > 0 && slice.length[n - 1] <= step) --n;
  return n;
}
// Row steps of the slice before `step`: the place of a step in everything kept.
inline int64_t rows_before(const Slice& slice, int64_t step) {
  int64_t sum = 0;
  for (int64_t r = 0; r < slice.rows; ++r) sum += smaller(slice.length[r], step);
  return sum;
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
