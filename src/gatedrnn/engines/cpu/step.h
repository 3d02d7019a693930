// One step of time, straight from the caller's weights: to put all of them into panels first would cost many times the
// products of a few rows, which read each weight once.
#pragma once
#include "pack.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// The first `count` lanes, 0 in the others.
template <class Real> GATEDRNN_INLINE Vec<Real> load_some(const Real* p, int64_t count) {
  Vec<Real> v = {};
  __builtin_memcpy(&v, p, size_t(count) * sizeof(Real));
  return v;
}
template <class Real> GATEDRNN_INLINE void store_some(Real* p, Vec<Real> v, int64_t count) {
  __builtin_memcpy(p, &v, size_t(count) * sizeof(Real));
}
GATEDRNN_INLINE float sum_of_lanes(Floats v) {
#if defined(__AVX512F__) && GATEDRNN_VECTOR_BYTES == 64
  return _mm512_reduce_add_ps((__m512)v);
#else
  float sum = 0;
  for (int i = 0; i < Tile<float>::lanes; ++i) sum += v[i];
  return sum;
#endif
}
GATEDRNN_INLINE double sum_of_lanes(Doubles v) {
  double sum = 0;
  for (int i = 0; i < Tile<double>::lanes; ++i) sum += v[i];
  return sum;
}

// result[r][u] += x[r] . weight[u] for R rows and U units; both operands have `depth` entries a row.
template <class Real, int R, int U>
GATEDRNN_INLINE void dot_tile(Real* result, int64_t result_stride, const Real* x, const Real* weight, int64_t depth) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  Vec<Real> sums[R][U] = {};
  int64_t k = 0;
  auto add = [&](auto&& loaded) __attribute__((always_inline)) {
    Vec<Real> left[R];
    for (int r = 0; r < R; ++r) left[r] = loaded(x + r * depth + k);
    for (int u = 0; u < U; ++u) {
      const Vec<Real> right = loaded(weight + u * depth + k);
      for (int r = 0; r < R; ++r) sums[r][u] += left[r] * right;
    }
  };
  for (; k + lanes <= depth; k += lanes) add([](const Real* p) __attribute__((always_inline)) { return load(p); });
  if (k < depth) add([&](const Real* p) __attribute__((always_inline)) { return load_some(p, depth - k); });
  for (int r = 0; r < R; ++r)
    for (int u = 0; u < U; ++u) result[r * result_stride + u] += sum_of_lanes(sums[r][u]);
}

template <class Real, int R>
void dots_of_rows(Real* result, int64_t result_stride, const Real* x, const Real* weight, int64_t units, int64_t depth) {
  constexpr int some = R == 1 ? 8 : 4;
  int64_t u = 0;
  for (; u + some <= units; u += some) dot_tile<Real, R, some>(result + u, result_stride, x, weight + u * depth, depth);
  for (; u < units; ++u) dot_tile<Real, R, 1>(result + u, result_stride, x, weight + u * depth, depth);
}
template <class Real>
void dots(Real* result, int64_t result_stride, const Real* x, int64_t rows, const Real* weight, int64_t units, int64_t depth) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) dots_of_rows<Real, 4>(result + r * result_stride, result_stride, x + r * depth, weight, units, depth);
  for (; r < rows; ++r) dots_of_rows<Real, 1>(result + r * result_stride, result_stride, x + r * depth, weight, units, depth);
}

// A matrix whose rows and columns are so far apart.
template <class Real> struct Strided {
  const Real* data;
  int64_t row, column;
};

// result = left right, or added to it, for R rows and V vectors of the `columns` of right and result, of which the last
// vector has `count`.
template <class Real, int R, int V>
GATEDRNN_INLINE void columns_tile(Real* result, const Strided<Real>& left, int64_t depth, const Real* right, int64_t columns, int64_t count,
                                  bool add) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  Vec<Real> sums[R][V] = {};
  auto loaded = [&](const Real* p, int v) __attribute__((always_inline)) {
    return v == V - 1 && count < lanes ? load_some(p + v * lanes, count) : load(p + v * lanes);
  };
  for (int r = 0; add && r < R; ++r)
    for (int v = 0; v < V; ++v) sums[r][v] = loaded(result + r * columns, v);
  for (int64_t n = 0; n < depth; ++n)
    for (int v = 0; v < V; ++v) {
      const Vec<Real> some = loaded(right + n * columns, v);
      for (int r = 0; r < R; ++r) sums[r][v] += left.data[r * left.row + n * left.column] * some;
    }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) {
      Real* place = result + r * columns + v * lanes;
      if (v == V - 1 && count < lanes)
        store_some(place, sums[r][v], count);
      else
        store(place, sums[r][v]);
    }
}

template <class Real, int R>
void columns_of_rows(Real* result, const Strided<Real>& left, int64_t depth, const Real* right, int64_t columns, int64_t begin, int64_t end,
                     bool add) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  constexpr int some = R == 1 ? 8 : 4;
  int64_t k = begin;
  for (; k + some * lanes <= end; k += some * lanes) columns_tile<Real, R, some>(result + k, left, depth, right + k, columns, lanes, add);
  for (; k < end; k += lanes) columns_tile<Real, R, 1>(result + k, left, depth, right + k, columns, smaller(lanes, end - k), add);
}

// result = left right, or added to it, in the columns [begin, end).
template <class Real>
void multiply(Real* result, Strided<Real> left, int64_t rows, int64_t depth, const Real* right, int64_t columns, int64_t begin, int64_t end,
              bool add) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, result += 4 * columns, left.data += 4 * left.row)
    columns_of_rows<Real, 4>(result, left, depth, right, columns, begin, end, add);
  for (; r < rows; ++r, result += columns, left.data += left.row) columns_of_rows<Real, 1>(result, left, depth, right, columns, begin, end, add);
}

// A call of one step: what Task is for a scan.
template <class Real> struct Step {
  static constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan;
  const Plan& plan;
  const CellLayout& layout;
  const CellKernel<Real> cell;
  const int64_t rows, hidden, inputs, panels;
  CellParameters<Real> parameters;
  Real *coefficients, *x, *da;  // da: [block][row][hidden unit]
  char* thread_space;
  int64_t thread_bytes, bytes;

  Step(const Call& call, bool backward)
      : scan(*call.scan), plan(*call.plan), layout(plan.layout), cell(kernel_of<Real>(GatedrnnCell(scan.cell), GatedrnnGate(scan.gate))),
        rows(scan.batch), hidden(scan.hidden), inputs(scan.inputs), panels((scan.hidden + width - 1) / width) {
    Arena arena(call.space);
    coefficients = arena.take<Real>(scan.coefficient_count + 1);
    x = arena.take<Real>(rows * inputs);
    da = arena.take<Real>(backward ? layout.blocks * rows * hidden : 0);
    parameters = {{coefficients, scan.coefficient_count, plan.program}, Real(scan.odds)};
    const int64_t shared = arena.used();
    thread_bytes = Panels(*this, nullptr).bytes;
    thread_space = call.space ? call.space + shared : nullptr;
    bytes = shared + thread_bytes * plan.threads;
  }

  // One panel of hidden units, a thread's own.
  struct Panels {
    Real *a, *h_previous, *h, *c, *c_previous, *packed, *scratch;
    int64_t bytes;
    Panels(const Step& step, char* base) {
      Arena arena(base);
      const int64_t size = step.rows * width;
      a = arena.take<Real>(step.layout.blocks * size);
      h_previous = arena.take<Real>(size);
      h = arena.take<Real>(size);
      c = arena.take<Real>(size);
      c_previous = arena.take<Real>(size);
      packed = arena.take<Real>(step.rows > few_rows ? larger(step.inputs, step.hidden) * width : 0);
      scratch = arena.take<Real>(program_scratch<Real>(step.plan.program, size));
      bytes = arena.used();
    }
  };

  // Up to so many rows, the products are dots of rows; more are worth a panel of the weights.
  static constexpr int64_t few_rows = 8;
  // a += x weight^T for the units of a panel.
  void add_product(Real* a, const Real* x, const Real* weight, int64_t depth, int64_t panel, const Panels& space) const {
    if (rows <= few_rows) return dots(a, width, x, rows, weight + panel * width * depth, units(panel), depth);
    pack_transposed(space.packed, weight, panel * width, hidden, depth, depth);
    product<Real>(Start::result, Left<Real>{}, Left<Real>{x, 0, depth, 1, depth}, rows, 1, space.packed, 0, nullptr, a, 0, units(panel));
  }
  const Real* typed(const void* p) const { return static_cast<const Real*>(p); }
  Real* typed(void* p) const { return static_cast<Real*>(p); }
  int64_t units(int64_t panel) const { return smaller(width, hidden - panel * width); }
  Real* kept(int64_t panel, int block) const {
    return typed(scan.kept) + (panel * (layout.blocks + (layout.memory ? 1 : 0)) + block) * rows * width;
  }
  // Rows of the caller's (rows, hidden) array, `stride` apart, into a panel and back.
  void to_panel(Real* panel, const void* from, int64_t p, int64_t stride) const {
    for (int64_t r = 0; r < rows; ++r) row_to_panels(panel + r * width, 0, typed(from) + r * stride + p * width, units(p));
  }
  void add_to_panel(Real* panel, const void* from, int64_t p, int64_t stride) const {
    for (int64_t r = 0; from && r < rows; ++r) add_row_to_panels(panel + r * width, 0, typed(from) + r * stride + p * width, units(p));
  }
  void from_panel(void* to, const Real* panel, int64_t p) const {
    for (int64_t r = 0; to && r < rows; ++r) panels_to_row(typed(to) + r * hidden + p * width, panel + r * width, 0, units(p));
  }
};

// What all threads read: the numbers of the gate, and the input with its features side by side.
template <class Real> void prepare_step(const Step<Real>& step, int64_t thread) {
  const GatedrnnScan& scan = step.scan;
  if (thread != 0) return;
  for (int64_t k = 0; k < scan.coefficient_count; ++k) step.coefficients[k] = Real(scan.coefficients[k]);
  for (int64_t r = 0; r < step.rows; ++r)
    for (int64_t i = 0; i < step.inputs; ++i)
      step.x[r * step.inputs + i] = step.typed(scan.input)[r * scan.input_strides[1] + i * scan.input_strides[2]];
}

template <class Real> void forward_step(const Step<Real>& step, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = step.scan;
  const CellLayout& layout = step.layout;
  const int64_t rows = step.rows, hidden = step.hidden, size = rows * width;
  const typename Step<Real>::Panels space(step, step.thread_space + thread * step.thread_bytes);
  for (int64_t p = thread; p < step.panels; p += step.plan.threads) {
    ForwardPanel<Real> panel{};
    for (int block = 0; block < layout.blocks; ++block) {
      const BlockSource& source = layout.source[block];
      const Real* input = source.input_bias < 0 ? nullptr : step.typed(scan.weights[source.bias_ih]);
      const Real* state = source.hidden_bias < 0 ? nullptr : step.typed(scan.weights[source.bias_hh]);
      Real* a = panel.a[block] = space.a + block * size;
      if (block < layout.copied) {
        step.to_panel(a, step.x, p, step.inputs);
        continue;
      }
      for (int64_t j = 0; j < width; ++j) {
        const int64_t unit = p * width + j;
        Real bias = 0;
        if (unit < hidden && input) bias += input[source.input_bias * hidden + unit];
        if (unit < hidden && state) bias += state[source.hidden_bias * hidden + unit];
        for (int64_t r = 0; r < rows; ++r) a[r * width + j] = bias;
      }
      if (source.input >= 0 && step.inputs > 0)
        step.add_product(a, step.x, step.typed(scan.weights[source.weight_ih]) + source.input * hidden * step.inputs, step.inputs, p, space);
      if (source.hidden >= 0)
        step.add_product(a, step.typed(scan.state[0]), step.typed(scan.weights[source.weight_hh]) + source.hidden * hidden * hidden, hidden, p,
                         space);
    }
    for (int block = layout.blocks; block < most_blocks; ++block) panel.a[block] = space.a;
    step.to_panel(space.h_previous, scan.state[0], p, hidden);
    if (layout.memory) step.to_panel(space.c, scan.state[1], p, hidden);
    panel.h_previous = space.h_previous;
    panel.h = space.h;
    panel.c = space.c;
    panel.scratch = space.scratch;
    panel.size = size;
    step.cell.forward(panel, step.parameters);
    step.from_panel(scan.output, space.h, p);
    step.from_panel(scan.final_state[0], space.h, p);
    if (layout.memory) {
      step.from_panel(scan.final_state[1], space.c, p);
      step.from_panel(scan.cells, space.c, p);
    }
    if (!scan.kept) continue;
    __builtin_memcpy(step.kept(p, 0), space.a, size_t(layout.blocks * size) * sizeof(Real));
    if (layout.memory) __builtin_memcpy(step.kept(p, layout.blocks), space.c, size_t(size) * sizeof(Real));
  }
}

// The gradients of the pre-activations, and of the states as far as they do not pass through the products.
template <class Real> void backward_elements(const Step<Real>& step, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = step.scan;
  const CellLayout& layout = step.layout;
  const int64_t rows = step.rows, hidden = step.hidden, size = rows * width;
  const typename Step<Real>::Panels space(step, step.thread_space + thread * step.thread_bytes);
  for (int64_t p = thread; p < step.panels; p += step.plan.threads) {
    BackwardPanel<Real> panel{};
    for (int b = 0; b < most_blocks; ++b) {
      const int block = b < layout.blocks ? b : 0;
      panel.a[b] = step.kept(p, block);
      panel.da[b] = space.a + block * size;
    }
    clear(space.h, size);
    clear(space.c, size);
    step.add_to_panel(space.h, scan.grad_final_state[0], p, hidden);
    step.add_to_panel(space.h, scan.grad_output, p, scan.grad_output_strides[1]);
    step.to_panel(space.h_previous, scan.state[0], p, hidden);
    if (layout.memory) {
      step.add_to_panel(space.c, scan.grad_final_state[1], p, hidden);
      step.add_to_panel(space.c, scan.grad_cells, p, scan.grad_cells_strides[1]);
      step.to_panel(space.c_previous, scan.state[1], p, hidden);
      panel.c = step.kept(p, layout.blocks);
    }
    panel.h_previous = space.h_previous;
    panel.c_previous = space.c_previous;
    panel.dh = space.h;
    panel.dc = space.c;
    panel.scratch = space.scratch;
    panel.size = size;
    step.cell.backward(panel, step.parameters);
    for (int block = 0; block < layout.blocks; ++block) step.from_panel(step.da + block * rows * hidden, panel.da[block], p);
    if (!step.cell.direct) clear(space.h, size);
    step.from_panel(scan.grad_state[0], space.h, p);
    if (layout.memory) step.from_panel(scan.grad_state[1], space.c, p);
  }
}

// A thread's share of the columns of a product, in whole panels.
struct Columns {
  int64_t begin, end;
  Columns(int64_t thread, int64_t threads, int64_t columns, int64_t width) {
    const int64_t parts = (columns + width - 1) / width;
    begin = thread * parts / threads * width;
    end = smaller((thread + 1) * parts / threads * width, columns);
  }
};

template <class Real> void backward_products(const Step<Real>& step, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = step.scan;
  const int64_t rows = step.rows, hidden = step.hidden, inputs = step.inputs;
  const int64_t threads = step.plan.threads, first = thread * hidden / threads, units = (thread + 1) * hidden / threads - first;
  const Columns of_input(thread, threads, inputs, width), of_state(thread, threads, hidden, width);
  bool add = false;  // to the gradient of the input
  for (int block = 0; block < step.layout.blocks; ++block) {
    const BlockSource& source = step.layout.source[block];
    const Real* da = step.da + block * rows * hidden;
    const Strided<Real> by_row{da, hidden, 1}, by_unit{da + first, 1, hidden};
    if (block < step.layout.copied) {
      for (int64_t r = 0; scan.grad_input && r < rows; ++r)
        for (int64_t i = of_input.begin; i < of_input.end; ++i) step.typed(scan.grad_input)[r * inputs + i] = da[r * hidden + i];
      add = true;
    }
    if (source.input >= 0 && inputs > 0) {
      const int64_t place = source.input * hidden * inputs;
      Real* gradient = step.typed(scan.grad_weights[source.weight_ih]) + place + first * inputs;
      multiply(gradient, by_unit, units, rows, step.x, inputs, 0, inputs, false);
      if (scan.grad_input)
        multiply(step.typed(scan.grad_input), by_row, rows, hidden, step.typed(scan.weights[source.weight_ih]) + place, inputs,
                 of_input.begin, of_input.end, add);
      add = true;
    }
    if (source.hidden >= 0) {
      const int64_t place = source.hidden * hidden * hidden;
      Real* gradient = step.typed(scan.grad_weights[source.weight_hh]) + place + first * hidden;
      multiply(gradient, by_unit, units, rows, step.typed(scan.state[0]), hidden, 0, hidden, false);
      multiply(step.typed(scan.grad_state[0]), by_row, rows, hidden, step.typed(scan.weights[source.weight_hh]) + place, hidden,
               of_state.begin, of_state.end, true);
    }
    if (thread != 0) continue;
    const struct {
      GatedrnnWeight place;
      int row;
    } biases[] = {{source.bias_ih, source.input_bias}, {source.bias_hh, source.hidden_bias}};
    for (const auto& bias : biases)
      if (bias.row >= 0 && scan.grad_weights[bias.place])
        for (int64_t n = 0; n < hidden; ++n) {
          Real sum = 0;
          for (int64_t r = 0; r < rows; ++r) sum += da[r * hidden + n];
          step.typed(scan.grad_weights[bias.place])[bias.row * hidden + n] = sum;
        }
  }
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
