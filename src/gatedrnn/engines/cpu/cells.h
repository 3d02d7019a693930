// What the time loop asks of a cell: the elementwise part of one step, forward and backward, on one panel of
// hidden units for all rows. One file for each cell implements it for every gate.
#pragma once
#include "gates.h"
#include "program.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Numbers that the elementwise code needs beside the state.
template <class Real> struct CellParameters {
  GateParameters<Real> gate;
  Real odds;  // e^-beta of JANET
};

template <class Real> struct ForwardPanel {
  Real* a[most_blocks];  // in: pre-activations; out: what the backward reads
  const Real* h_previous;
  Real* h;
  Real* c;       // in: before the step; out: after it
  Real* gated;   // of a cell with late blocks: what these read in place of h
  Real* between; // of such a cell: what its first stage leaves for the second
  Real* scratch; // room for a gate program
  int64_t size;  // elements, whole vectors
};

template <class Real> struct BackwardPanel {
  const Real* a[most_blocks];
  Real* da[most_blocks];
  const Real* h_previous;
  const Real* c_previous;
  const Real* c;
  Real* dh;  // in: gradient of h; out: the part of it that reaches h_previous directly
  Real* dc;  // in: gradient of c; out: of c_previous
  Real* h;   // out, where not null: h before the projection
  Real* gated;             // as in the forward
  const Real* dgated;      // its gradient, for the second stage
  Real *between, *partial; // what the first stage leaves for the second
  Real* scratch;
  int64_t size;
};

template <class Real> using ForwardStage = void (*)(const ForwardPanel<Real>&, const CellParameters<Real>&);
template <class Real> using BackwardStage = void (*)(const BackwardPanel<Real>&, const CellParameters<Real>&);

template <class Real> struct CellKernel {
  ForwardStage<Real> forward;
  BackwardStage<Real> backward;
  bool direct;  // whether dh reaches h_previous directly
  // Of a cell with late blocks (facts.h), else null: the stage before `forward`, which makes `gated`, and the one after
  // `backward`, which has its gradient.
  ForwardStage<Real> early;
  BackwardStage<Real> late;
};
// A cell whose blocks all read h.
template <class Real> struct OneStage {
  static constexpr ForwardStage<Real> early = nullptr;
  static constexpr BackwardStage<Real> late = nullptr;
};

// The kernel of a cell (a template over the gate with the members of CellKernel) for a gate.
template <class Real, template <class, class> class Cell> CellKernel<Real> kernel_for_gate(GatedrnnGate gate) {
  switch (gate) {
#define GATEDRNN_CASE(NAME, text, Gate, ...) \
  case GATEDRNN_##NAME:                      \
    return {Cell<Real, Gate>::forward, Cell<Real, Gate>::backward, Cell<Real, Gate>::direct, Cell<Real, Gate>::early, Cell<Real, Gate>::late};
    GATEDRNN_GATES(GATEDRNN_CASE)
#undef GATEDRNN_CASE
    case GATEDRNN_GATE_COUNT: break;
  }
  __builtin_trap();  // numbers are checked where they enter the library
}

// Defines the kernels of a cell in its own file.
#define GATEDRNN_DEFINE_CELL(name, Cell)                                                                              \
  template <> CellKernel<float> name##_kernel(GatedrnnGate gate) { return kernel_for_gate<float, Cell>(gate); } \
  template <> CellKernel<double> name##_kernel(GatedrnnGate gate) { return kernel_for_gate<double, Cell>(gate); }

#define GATEDRNN_DECLARE(NAME, name, ...) template <class Real> CellKernel<Real> name##_kernel(GatedrnnGate gate);
GATEDRNN_FUSED_CELLS(GATEDRNN_DECLARE)
#undef GATEDRNN_DECLARE

template <class Real> CellKernel<Real> kernel_of(GatedrnnCell cell, GatedrnnGate gate) {
  switch (cell) {
#define GATEDRNN_CASE(NAME, name, ...) \
  case GATEDRNN_##NAME: return name##_kernel<Real>(gate);
    GATEDRNN_FUSED_CELLS(GATEDRNN_CASE)
#undef GATEDRNN_CASE
    case GATEDRNN_NRU:
    case GATEDRNN_CELL_COUNT: break;
  }
  __builtin_trap();
}

// A step is made in several short passes over the panel, which stays in the first cache. In one pass with all functions
// the work on a vector would be one long chain, of which the processor has only two in sight: half as fast.
template <class Real> GATEDRNN_INLINE void logistic_pass(Real* a, int64_t size) {
  for (int64_t j = 0; j < size; j += Tile<Real>::lanes) store(a + j, logistic<Real>(load(a + j)));
}
template <class Real> GATEDRNN_INLINE void tanh_pass(Real* result, const Real* x, int64_t size) {
  for (int64_t j = 0; j < size; j += Tile<Real>::lanes) store(result + j, tanh<Real>(load(x + j)));
}
// Elements of scratch that a gate program needs for panels of so many.
template <class Real> int64_t program_scratch(const GateProgram* program, int64_t size) {
  return program ? 2 * size + program->registers * program_piece<Real>(program->registers) : 0;
}

// The forget gate of a step, forward: first a pass that puts what the backward needs in the place of z, then the values.
template <class Real, class Gate> class ForgetForward {
 public:
  GATEDRNN_INLINE ForgetForward(Real* z, const Real* aux, int64_t size, Real* scratch, const CellParameters<Real>& parameters)
      : source_(z), aux_(aux), parameters_(parameters.gate) {
    if constexpr (Gate::traced) {
      run_program<Real>(*parameters.gate.program, z, size, {scratch, scratch + size}, scratch + 2 * size);
      source_ = scratch;
    } else {
      for (int64_t j = 0; j < size; j += Tile<Real>::lanes) store(z + j, Gate::template kept<Real>(load(z + j), parameters_));
    }
  }
  GATEDRNN_INLINE GateValue<Real> operator()(int64_t j) const {
    Vec<Real> second = {};
    if constexpr (Gate::preactivations == 2) second = load(aux_ + j);
    return Gate::template parts<Real>(load(source_ + j), second, parameters_);
  }

 private:
  const Real *source_, *aux_;
  const GateParameters<Real>& parameters_;
};

// f old + added, as in cells/base.py.
template <class Real> GATEDRNN_INLINE Vec<Real> remembered(const GateValue<Real>& forget, Vec<Real> old, Vec<Real> added) {
  const auto closing = forget.value < Real(0.5);
  return (closing ? Vec<Real>{} : old) + (added + (closing ? forget.value : -forget.complement) * old);
}

// The same backward, with the slopes, from what the forward left.
template <class Real, class Gate> class ForgetBackward {
 public:
  GATEDRNN_INLINE ForgetBackward(const Real* kept, const Real* aux, int64_t size, Real* scratch, const CellParameters<Real>& parameters)
      : source_(kept), aux_(aux), parameters_(parameters.gate) {
    if constexpr (Gate::traced) {
      run_program<Real>(*parameters.gate.program, kept, size, {scratch, scratch + size}, scratch + 2 * size);
      source_ = scratch;
      aux_ = scratch + size;
    }
  }
  GATEDRNN_INLINE GateSlope<Real> operator()(int64_t j) const {
    Vec<Real> second = {};
    if constexpr (Gate::traced || Gate::preactivations == 2) second = load(aux_ + j);
    return Gate::template slopes<Real>(load(source_ + j), second, parameters_);
  }

 private:
  const Real *source_, *aux_;
  const GateParameters<Real>& parameters_;
};

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
