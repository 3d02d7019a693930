// The NRU: its time loop forward and backward. h reads [x; h; m], and the heads, which change m, read [h; m] with the new h.
// Equations: cells/nru.py. In the scan `recurrent` is the size of h and `hidden` that of m.
#pragma once
#include "backward.h"
#include "heads.h"
#include "pack.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

template <class Real> struct NruTask : Arrays<Real> {
  using Arrays<Real>::width;
  using Arrays<Real>::scan;
  const bool backward;
  int64_t factor, late;                                          // s, and the pre-activations of the heads
  int64_t h_panels, m_panels, u_panels, late_panels, x_panels;  // u: [h; m], each in whole panels
  Real *right_h, *right_late;               // [panel][x rows, then u rows][width]
  Real *bias_h, *bias_late;                 // [panel][width]
  Real *back_h, *back_late, *back_input;    // [panel of u or x][rows of h or of the heads][width]
  char* thread_space;
  int64_t thread_bytes, total_bytes;

  NruTask(const Call& call, bool to_go_back);

  int64_t columns() const { return scan.inputs + scan.recurrent + scan.hidden; }  // of W_h
  int64_t u() const { return u_panels * width; }
  int64_t kept_row() const { return late + scan.hidden; }
  // The weights over u: what comes from h and what comes from m.
  const Real* over_h(GatedrnnWeight place) const {
    return this->weight(place) + (place == GATEDRNN_WEIGHT_IH ? scan.inputs : 0);
  }
  int64_t stride(GatedrnnWeight place) const { return place == GATEDRNN_WEIGHT_IH ? columns() : scan.recurrent + scan.hidden; }
};

template <class Real> struct NruSpace {
  Real *input, *u[2], *late, *heads, *m_row, *d_row;
  Real *left_u, *left_new, *left_x, *da_h, *da_late, *du, *dx, *total_u, *total_x, *total_late, *total_bias_h, *total_bias_late, *segment;
  int64_t bytes;

  NruSpace(const NruTask<Real>& task, bool backward, char* base) {
    constexpr int64_t width = Tile<Real>::width;
    const GatedrnnScan& scan = task.scan;
    Arena arena(base);
    const int64_t rows = task.plan.most_rows, block = larger(rows, block_rows), U = task.u(), H = task.h_panels * width,
                  L = task.late_panels * width;
    input = arena.take<Real>(rows * scan.inputs);
    for (Real*& some : u) some = arena.take<Real>(rows * U);
    late = arena.take<Real>(rows * L);
    heads = arena.take<Real>(Heads<Real>::scratch(scan.heads, task.factor));
    m_row = arena.take<Real>(scan.hidden);
    d_row = arena.take<Real>(task.late);
    if (backward) {
      left_u = arena.take<Real>(block * U);
      left_new = arena.take<Real>(block * U);
      left_x = arena.take<Real>(block * task.x_panels * width);
      da_h = arena.take<Real>(block * H);
      da_late = arena.take<Real>(block * L);
      du = arena.take<Real>(rows * U);
      dx = arena.take<Real>(block * width);
      total_u = arena.take<Real>(U * H);
      total_x = arena.take<Real>(scan.inputs * H);
      total_late = arena.take<Real>(U * L);
      total_bias_h = arena.take<Real>(H);
      total_bias_late = arena.take<Real>(L);
      segment = arena.take<Real>(scan.segment ? smaller(scan.segment, scan.steps) * rows * task.kept_row() : 0);
    }
    bytes = arena.used();
  }
};

template <class Real> NruTask<Real>::NruTask(const Call& call, bool to_go_back) : Arrays<Real>(call), backward(to_go_back) {
  factor = 0;
  while (factor * factor < scan.hidden * scan.heads) ++factor;  // a square: checked where the call enters
  late = 2 * scan.heads + 4 * factor;
  h_panels = divide_up(scan.recurrent, width);
  m_panels = divide_up(scan.hidden, width);
  u_panels = h_panels + m_panels;
  late_panels = divide_up(late, width);
  x_panels = divide_up(scan.inputs, width);
  Arena arena(call.space);
  const int64_t H = h_panels * width, L = late_panels * width;
  right_h = arena.take<Real>(H * (scan.inputs + u()));
  right_late = arena.take<Real>(L * u());
  bias_h = arena.take<Real>(H);
  bias_late = arena.take<Real>(L);
  back_h = arena.take<Real>(backward ? u() * H : 0);
  back_late = arena.take<Real>(backward ? u() * L : 0);
  back_input = arena.take<Real>(backward ? x_panels * width * H : 0);
  const int64_t shared = arena.used();
  thread_bytes = NruSpace<Real>(*this, backward, nullptr).bytes;
  thread_space = call.space ? call.space + shared : nullptr;
  total_bytes = shared + thread_bytes * this->plan.threads;
}

template <class Real> void pack_nru(const NruTask<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const int64_t H = scan.recurrent, M = scan.hidden, threads = task.plan.threads;
  auto bias = [&](Real* to, GatedrnnWeight place, int64_t p, int64_t units) {
    const Real* given = task.weight(place);
    for (int64_t lane = 0; lane < width; ++lane)
      to[p * width + lane] = given && p * width + lane < units ? given[p * width + lane] : Real(0);
  };
  // One panel of weights over u, the rows of h first.
  auto pack_u = [&](Real* panel, GatedrnnWeight place, int64_t p, int64_t units) {
    const Real* weight = task.over_h(place);
    pack_transposed(panel, weight, p * width, units, H, task.h_panels * width, task.stride(place));
    pack_transposed(panel + task.h_panels * width * width, weight + H, p * width, units, M, task.m_panels * width, task.stride(place));
  };
  for (int64_t p = thread; p < task.h_panels; p += threads) {
    Real* panel = task.right_h + p * (scan.inputs + task.u()) * width;
    pack_transposed(panel, task.weight(GATEDRNN_WEIGHT_IH), p * width, H, scan.inputs, scan.inputs, task.columns());
    pack_u(panel + scan.inputs * width, GATEDRNN_WEIGHT_IH, p, H);
    bias(task.bias_h, GATEDRNN_BIAS_IH, p, H);
  }
  for (int64_t p = thread; p < task.late_panels; p += threads) {
    pack_u(task.right_late + p * task.u() * width, GATEDRNN_WEIGHT_HH, p, task.late);
    bias(task.bias_late, GATEDRNN_BIAS_HH, p, task.late);
  }
  if (!task.backward) return;
  auto pack_back = [&](Real* panels, GatedrnnWeight place, int64_t p, int64_t units, int64_t depth) {
    const Real* weight = task.over_h(place);
    Real* panel = panels + p * depth * width;
    if (p < task.h_panels)
      pack_plain(panel, weight, units, p * width, H, depth, task.stride(place));
    else
      pack_plain(panel, weight + H, units, (p - task.h_panels) * width, M, depth, task.stride(place));
  };
  for (int64_t p = thread; p < task.u_panels; p += threads) {
    pack_back(task.back_h, GATEDRNN_WEIGHT_IH, p, H, task.h_panels * width);
    pack_back(task.back_late, GATEDRNN_WEIGHT_HH, p, task.late, task.late_panels * width);
  }
  if (scan.grad_input)
    for (int64_t p = thread; p < task.x_panels; p += threads)
      pack_plain(task.back_input + p * task.h_panels * width * width, task.weight(GATEDRNN_WEIGHT_IH), H, p * width, scan.inputs,
                 task.h_panels * width, task.columns());
}

// The memory of a row before the first step of a segment: the one given, or from a checkpoint (rows).
template <class Real>
void load_nru(const NruTask<Real>& task, const Slice& slice, const NruSpace<Real>& space, int64_t step, const Real* checkpoint) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const int64_t stride = slice.rows * width;
  for (int64_t r = 0; r < slice.rows; ++r) {
    const int64_t begin = slice.length[r] >= step ? step : 0;  // a row that has ended is not used
    row_to_panels(space.u[0] + r * width, stride, task.h_before(slice, r, begin), scan.recurrent);
    const Real* m = checkpoint ? checkpoint + r * scan.hidden : task.typed(scan.state[1]) + slice.row[r] * scan.hidden;
    row_to_panels(space.u[0] + task.h_panels * stride + r * width, stride, m, scan.hidden);
  }
}

// Steps [begin, end) of a slice, as forward_steps.
template <class Real>
void nru_forward_steps(const NruTask<Real>& task, const Slice& slice, const NruSpace<Real>& space, int64_t begin, int64_t end, Real* kept,
                       bool recomputing, Real* checkpoints) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const int64_t stride = slice.rows * width, H = scan.recurrent, M = scan.hidden;
  const Heads<Real> heads(M, scan.heads, task.factor, scan.relu != 0, space.heads);
  const Left<Real> none;
  for (int64_t step = begin; step < end; ++step) {
    const int64_t rows = active_rows(slice, step), going_on = active_rows(slice, step + 1);
    const Real* before = space.u[(step - begin) % 2];
    Real *after = space.u[(step - begin + 1) % 2], *m = after + task.h_panels * stride;
    for (int64_t r = 0; r < rows; ++r) pack_input_row<Real>(task, slice, r, step, space.input + r * scan.inputs, scan.inputs);
    const Left<Real> x{space.input, 0, scan.inputs, 1, scan.inputs}, u{before, stride, width, task.u_panels, width};
    product<Real>(Start::bias, x, u, rows, task.h_panels, task.right_h, (scan.inputs + task.u()) * width, task.bias_h, after, stride);
    for (int64_t p = 0; p < task.h_panels; ++p) {
      for (int64_t j = 0; j < rows * width; j += Tile<Real>::lanes)
        store(after + p * stride + j, at_least<Real>(load<Real>(after + p * stride + j), 0));
      clear_lanes(after + p * stride, rows, H - p * width);
    }
    for (int64_t p = 0; p < task.m_panels; ++p)
      __builtin_memcpy(m + p * stride, before + (task.h_panels + p) * stride, size_t(rows * width) * sizeof(Real));
    const Left<Real> now{after, stride, width, task.u_panels, width};
    product<Real>(Start::bias, none, now, rows, task.late_panels, task.right_late, task.u() * width, task.bias_late, space.late, stride);
    for (int64_t r = 0; r < rows; ++r) {
      panels_to_row(heads.row(), space.late + r * width, stride, task.late);
      panels_to_row(space.m_row, m + r * width, stride, M);
      if (kept) {
        __builtin_memcpy(kept, heads.row(), size_t(task.late) * sizeof(Real));
        __builtin_memcpy(kept + task.late, space.m_row, size_t(M) * sizeof(Real));
        kept += task.kept_row();
      }
      heads.forward(space.m_row);
      row_to_panels(m + r * width, stride, space.m_row, M);
      if (recomputing) continue;
      panels_to_row(task.typed(scan.output) + task.place(slice, r, step) * H, after + r * width, stride, H);
      if (scan.cells)
        __builtin_memcpy(task.typed(scan.cells) + task.place(slice, r, step) * M, space.m_row, size_t(M) * sizeof(Real));
      if (checkpoints && (step + 1) % scan.segment == 0 && step + 1 < scan.steps)
        __builtin_memcpy(checkpoints + ((step + 1) / scan.segment * slice.rows + r) * M, space.m_row, size_t(M) * sizeof(Real));
      if (r < going_on) continue;
      panels_to_row(task.typed(scan.final_state[0]) + slice.row[r] * H, after + r * width, stride, H);
      __builtin_memcpy(task.typed(scan.final_state[1]) + slice.row[r] * M, space.m_row, size_t(M) * sizeof(Real));
    }
  }
}

template <class Real> Real* kept_of_nru(const NruTask<Real>& task, const Slice& slice) {
  const GatedrnnScan& scan = task.scan;
  if (!scan.kept) return nullptr;
  return task.typed(scan.kept) +
         slice.first * (scan.segment ? divide_up(scan.steps, scan.segment) * scan.hidden : scan.steps * task.kept_row());
}

template <class Real> void nru_forward_thread(const NruTask<Real>& task, int64_t thread) {
  const GatedrnnScan& scan = task.scan;
  const NruSpace<Real> space(task, false, task.thread_space + thread * task.thread_bytes);
  for (int64_t s = thread; s < task.plan.slices; s += task.plan.threads) {
    const Slice& slice = task.plan.slice[s];
    Real* kept = kept_of_nru(task, slice);
    load_nru<Real>(task, slice, space, 0, nullptr);
    if (scan.segment && kept) clear(kept, divide_up(scan.steps, scan.segment) * slice.rows * scan.hidden);  // all of it is defined
    nru_forward_steps<Real>(task, slice, space, 0, slice.length[0], scan.segment ? nullptr : kept, false, scan.segment ? kept : nullptr);
    clear_padding<Real>(task, slice, task.typed(scan.output), scan.recurrent);
    clear_padding<Real>(task, slice, task.typed(scan.cells), scan.hidden);
  }
}

// The left operands of the weight gradients for steps [begin, end): u before each step, [h; m] with the new h, and x.
template <class Real>
void pack_left_of_nru(const NruTask<Real>& task, const Slice& slice, const NruSpace<Real>& space, int64_t begin, int64_t end, int64_t total,
                      const Real* kept) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const int64_t stride = total * width;
  Real* const lefts[] = {space.left_u, space.left_new};
  int64_t at = 0;
  for (int64_t step = begin; step < end; ++step)
    for (int64_t r = 0, rows = active_rows(slice, step); r < rows; ++r, ++at) {
      const Real *m = kept + at * task.kept_row() + task.late, *h = task.typed(scan.output) + task.place(slice, r, step) * scan.recurrent;
      row_to_panels(space.left_u + at * width, stride, task.h_before(slice, r, step), scan.recurrent);
      row_to_panels(space.left_new + at * width, stride, h, scan.recurrent);
      for (Real* left : lefts) row_to_panels(left + task.h_panels * stride + at * width, stride, m, scan.hidden);
      if (scan.inputs == 0) continue;
      const Real* x = task.typed(scan.input) + task.place(slice, r, step, scan.input_strides);
      for (int64_t i = 0; i < scan.inputs; ++i) space.left_x[i / width * stride + at * width + i % width] = x[i * scan.input_strides[2]];
    }
}

template <class Real>
void nru_backward_step(const NruTask<Real>& task, const Slice& slice, const NruSpace<Real>& space, const Heads<Real>& heads, int64_t step,
                       int64_t rows, int64_t at, int64_t total, const Real* kept) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const int64_t stride = slice.rows * width, H = task.h_panels * width, L = task.late_panels * width, wide = total * width;
  const Left<Real> none;
  Real* dm = space.du + task.h_panels * stride;
  for (int64_t r = 0; r < rows; ++r) {
    if (scan.grad_output)
      add_row_to_panels(space.du + r * width, stride,
                        task.typed(scan.grad_output) + task.place(slice, r, step, scan.grad_output_strides), scan.recurrent);
    if (scan.grad_cells)
      add_row_to_panels(dm + r * width, stride, task.typed(scan.grad_cells) + task.place(slice, r, step, scan.grad_cells_strides), scan.hidden);
    __builtin_memcpy(heads.row(), kept + r * task.kept_row(), size_t(task.late) * sizeof(Real));
    panels_to_row(space.m_row, dm + r * width, stride, scan.hidden);
    heads.backward(space.m_row, space.d_row);
    row_to_panels(space.da_late + (at + r) * width, wide, space.d_row, task.late);
  }
  const Left<Real> da_late{space.da_late + at * width, wide, width, task.late_panels, width};
  product<Real>(Start::result, none, da_late, rows, task.u_panels, task.back_late, L * width, nullptr, space.du, stride);
  for (int64_t p = 0; p < task.h_panels; ++p)
    for (int64_t j = 0; j < rows * width; j += Tile<Real>::lanes) {
      const Vec<Real> h = load<Real>(space.left_new + (p * total + at) * width + j);
      store(space.da_h + (p * total + at) * width + j, h > Real(0) ? load<Real>(space.du + p * stride + j) : Vec<Real>{});
    }
  const Left<Real> da_h{space.da_h + at * width, wide, width, task.h_panels, width};
  product<Real>(Start::zero, none, da_h, rows, task.h_panels, task.back_h, H * width, nullptr, space.du, stride);
  product<Real>(Start::result, none, da_h, rows, task.m_panels, task.back_h + task.h_panels * H * width, H * width, nullptr, dm, stride);
}

template <class Real> void add_rows(const Real* panels, int64_t count, int64_t rows, Real* total) {
  constexpr int64_t width = Tile<Real>::width, lanes = Tile<Real>::lanes;
  for (int64_t p = 0; p < count; ++p)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < width; v += lanes)
        store(total + p * width + v, load<Real>(total + p * width + v) + load(panels + (p * rows + r) * width + v));
}

template <class Real>
void nru_backward_steps(const NruTask<Real>& task, const Slice& slice, const NruSpace<Real>& space, int64_t begin, int64_t end, const Real* kept) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const Heads<Real> heads(scan.hidden, scan.heads, task.factor, scan.relu != 0, space.heads);
  const int64_t before = rows_before(slice, begin);
  while (end > begin) {
    int64_t first = end, total = 0;
    for (; first > begin; --first) {
      const int64_t more = active_rows(slice, first - 1);
      if (total > 0 && total + more > block_rows) break;
      total += more;
    }
    const Real* of_block = kept + (rows_before(slice, first) - before) * task.kept_row();
    pack_left_of_nru(task, slice, space, first, end, total, of_block);
    int64_t at = total;
    for (int64_t step = end; step-- > first;) {
      const int64_t rows = active_rows(slice, step);
      at -= rows;
      nru_backward_step(task, slice, space, heads, step, rows, at, total, of_block + at * task.kept_row());
    }
    accumulate<Real>(space.left_u, task.u(), space.da_h, scan.recurrent, total, space.total_u);
    accumulate<Real>(space.left_x, scan.inputs, space.da_h, scan.recurrent, total, space.total_x);
    accumulate<Real>(space.left_new, task.u(), space.da_late, task.late, total, space.total_late);
    add_rows(space.da_h, task.h_panels, total, space.total_bias_h);
    add_rows(space.da_late, task.late_panels, total, space.total_bias_late);
    for (int64_t p = 0; scan.grad_input && p < task.x_panels; ++p) {
      const Left<Real> none, da{space.da_h, total * width, width, task.h_panels, width};
      product<Real>(Start::zero, none, da, total, 1, task.back_input + p * task.h_panels * width * width, 0, nullptr, space.dx, 0);
      at = 0;
      for (int64_t step = first; step < end; ++step)
        for (int64_t r = 0, rows = active_rows(slice, step); r < rows; ++r, ++at)
          panels_to_row(task.typed(scan.grad_input) + task.place(slice, r, step) * scan.inputs + p * width, space.dx + at * width, 0,
                        smaller(width, scan.inputs - p * width));
    }
    end = first;
  }
}

template <class Real> void nru_backward_thread(const NruTask<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const NruSpace<Real> space(task, true, task.thread_space + thread * task.thread_bytes);
  const int64_t H = task.h_panels * width, L = task.late_panels * width, M = scan.hidden;
  clear(space.total_u, task.u() * H);
  clear(space.total_x, scan.inputs * H);
  clear(space.total_late, task.u() * L);
  clear(space.total_bias_h, H);
  clear(space.total_bias_late, L);
  for (int64_t s = thread; s < task.plan.slices; s += task.plan.threads) {
    const Slice& slice = task.plan.slice[s];
    const int64_t stride = slice.rows * width, steps = slice.length[0];
    Real* dm = space.du + task.h_panels * stride;
    clear(space.du, stride * task.u_panels);
    for (int64_t r = 0; r < slice.rows; ++r) {
      if (scan.grad_final_state[0])
        row_to_panels(space.du + r * width, stride, task.typed(scan.grad_final_state[0]) + slice.row[r] * scan.recurrent, scan.recurrent);
      if (scan.grad_final_state[1]) row_to_panels(dm + r * width, stride, task.typed(scan.grad_final_state[1]) + slice.row[r] * M, M);
    }
    const Real* kept = kept_of_nru(task, slice);
    if (!scan.segment) {
      nru_backward_steps<Real>(task, slice, space, 0, steps, kept);
    } else {
      for (int64_t begin = (steps - 1) / scan.segment * scan.segment; begin >= 0; begin -= scan.segment) {
        const int64_t end = smaller(begin + scan.segment, steps);
        load_nru<Real>(task, slice, space, begin, begin > 0 ? kept + begin / scan.segment * slice.rows * M : nullptr);
        nru_forward_steps<Real>(task, slice, space, begin, end, space.segment, true, nullptr);
        nru_backward_steps<Real>(task, slice, space, begin, end, space.segment);
      }
    }
    for (int64_t r = 0; r < slice.rows; ++r) {
      panels_to_row(task.typed(scan.grad_state[0]) + slice.row[r] * scan.recurrent, space.du + r * width, stride, scan.recurrent);
      panels_to_row(task.typed(scan.grad_state[1]) + slice.row[r] * M, dm + r * width, stride, M);
    }
    clear_padding<Real>(task, slice, task.typed(scan.grad_input), scan.inputs);
  }
}

template <class Real> void nru_reduce_thread(const NruTask<Real>& task, int64_t thread) {
  constexpr int64_t width = Tile<Real>::width;
  const GatedrnnScan& scan = task.scan;
  const NruSpace<Real> space(task, true, task.thread_space);
  const Reduction of_h{task.plan, thread, task.thread_bytes, task.h_panels, scan.recurrent};
  const Reduction of_late{task.plan, thread, task.thread_bytes, task.late_panels, task.late};
  const int64_t m_begin = task.h_panels * width;
  auto reduce_u = [&](const Reduction& sum, const Real* totals, Real* weight, int64_t stride) {
    reduce_block<Real>(sum, totals, task.u(), 0, scan.recurrent, weight, stride, true);
    reduce_block<Real>(sum, totals, task.u(), m_begin, m_begin + scan.hidden, weight + scan.recurrent, stride, true);
  };
  Real* W_h = task.typed(scan.grad_weights[GATEDRNN_WEIGHT_IH]);
  reduce_block<Real>(of_h, space.total_x, scan.inputs, 0, scan.inputs, W_h, task.columns(), true);
  reduce_u(of_h, space.total_u, W_h + scan.inputs, task.columns());
  reduce_u(of_late, space.total_late, task.typed(scan.grad_weights[GATEDRNN_WEIGHT_HH]), scan.recurrent + scan.hidden);
  if (Real* bias = task.typed(scan.grad_weights[GATEDRNN_BIAS_IH])) reduce_block<Real>(of_h, space.total_bias_h, 1, 0, 1, bias, 0, false);
  if (Real* bias = task.typed(scan.grad_weights[GATEDRNN_BIAS_HH])) reduce_block<Real>(of_late, space.total_bias_late, 1, 0, 1, bias, 0, false);
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
