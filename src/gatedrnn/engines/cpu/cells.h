// What the time loop asks of a cell: the elementwise part of one step, forward and backward, on one panel of
// hidden units for all rows. One file for each cell implements it for every gate.
#pragma once
#include "gates.h"
#include "plan.h"

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
  int64_t size;
};

template <class Real> struct CellKernel {
  void (*forward)(const ForwardPanel<Real>&, const CellParameters<Real>&);
  void (*backward)(const BackwardPanel<Real>&, const CellParameters<Real>&);
  bool direct;  // whether dh reaches h_previous directly
};

template <class Real> CellKernel<Real> lstm_kernel(int64_t gate);
template <class Real> CellKernel<Real> lstm_tied_kernel(int64_t gate);
template <class Real> CellKernel<Real> gru_kernel(int64_t gate);
template <class Real> CellKernel<Real> janet_kernel(int64_t gate);

// The kernel of a cell (a template over the gate with members `forward` and `backward`) for a gate by number.
template <class Real, template <class, class> class Cell> CellKernel<Real> kernel_for_gate(int64_t gate) {
  switch (gate) {
    case GATEDRNN_SIGMOID: return {Cell<Real, Sigmoid>::forward, Cell<Real, Sigmoid>::backward, Cell<Real, Sigmoid>::direct};
    case GATEDRNN_SOFTSIGN: return {Cell<Real, Softsign>::forward, Cell<Real, Softsign>::backward, Cell<Real, Softsign>::direct};
    case GATEDRNN_FAST: return {Cell<Real, Fast>::forward, Cell<Real, Fast>::backward, Cell<Real, Fast>::direct};
    case GATEDRNN_ITERATED_FAST:
      return {Cell<Real, IteratedFast>::forward, Cell<Real, IteratedFast>::backward, Cell<Real, IteratedFast>::direct};
    case GATEDRNN_POLYNOMIAL:
      return {Cell<Real, Polynomial>::forward, Cell<Real, Polynomial>::backward, Cell<Real, Polynomial>::direct};
    default: return {Cell<Real, Refine>::forward, Cell<Real, Refine>::backward, Cell<Real, Refine>::direct};
  }
}

// A step is made in several short passes over the panel, which stays in the first cache. In one pass with all functions
// the work on a vector would be one long chain, of which the processor has only two in sight: half as fast.
template <class Real> GATEDRNN_INLINE void logistic_pass(Real* a, int64_t size) {
  for (int64_t j = 0; j < size; j += Tile<Real>::lanes) store(a + j, logistic<Real>(load(a + j)));
}
template <class Real> GATEDRNN_INLINE void tanh_pass(Real* result, const Real* x, int64_t size) {
  for (int64_t j = 0; j < size; j += Tile<Real>::lanes) store(result + j, tanh<Real>(load(x + j)));
}
// What the backward needs of the forget gate in the place of its pre-activation.
template <class Real, class Gate> GATEDRNN_INLINE void kept_pass(Real* z, int64_t size, const CellParameters<Real>& parameters) {
  for (int64_t j = 0; j < size; j += Tile<Real>::lanes) store(z + j, Gate::template kept<Real>(load(z + j), parameters.gate));
}

// The forget gate of a step from what `kept_pass` left.
template <class Real, class Gate>
GATEDRNN_INLINE GateValue<Real> forget_forward(const Real* kept, const Real* aux, const CellParameters<Real>& parameters) {
  Vec<Real> second = {};
  if constexpr (Gate::preactivations == 2) second = load(aux);
  return Gate::template parts<Real>(load(kept), second, parameters.gate);
}
template <class Real, class Gate>
GATEDRNN_INLINE GateSlope<Real> forget_backward(const Real* kept, const Real* aux, const CellParameters<Real>& parameters) {
  Vec<Real> second = {};
  if constexpr (Gate::preactivations == 2) second = load(aux);
  return Gate::template slopes<Real>(load(kept), second, parameters.gate);
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
