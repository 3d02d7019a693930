// The elementwise part of the UGRNN and of the MinimalRNN: the same step, from a candidate with and without its tanh.
// Equations: cells/ugrnn.py, cells/minimal_rnn.py.
#include "cells.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// h = h + (1-f)(g - h), and its gradients: da_f and the auxiliary one, dg in the place of da_g, dh before the step.
template <class Real, class Gate>
GATEDRNN_INLINE void towards(const ForwardPanel<Real>& panel, const ForgetForward<Real, Gate>& gate, const Real* g) {
  for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
    auto forget = gate(j);
    Vec<Real> h = load(panel.h_previous + j);
    store(panel.h + j, h + forget.complement * (load(g + j) - h));
  }
}
template <class Real, class Gate>
GATEDRNN_INLINE void towards_backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters, int f, int candidate, int aux) {
  const ForgetBackward<Real, Gate> gate(panel.a[f], panel.a[aux], panel.size, panel.scratch, parameters);
  for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
    auto forget = gate(j);
    Vec<Real> dh = load<Real>(panel.dh + j), df = dh * (load(panel.h_previous + j) - load(panel.a[candidate] + j));
    store(panel.da[f] + j, df * forget.slope);
    store(panel.da[candidate] + j, dh * forget.complement);
    if constexpr (Gate::preactivations == 2) store(panel.da[aux] + j, df * forget.slope_aux);
    store(panel.dh + j, dh * forget.value);
  }
}

// Blocks f, g and the auxiliary pre-activation of the gate where it has one.
template <class Real, class Gate> struct Ugrnn : OneStage<Real> {
  static constexpr bool direct = true;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    const ForgetForward<Real, Gate> gate(panel.a[0], panel.a[2], panel.size, panel.scratch, parameters);
    tanh_pass<Real>(panel.a[1], panel.a[1], panel.size);
    towards(panel, gate, panel.a[1]);
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    towards_backward<Real, Gate>(panel, parameters, 0, 1, 2);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> g = load(panel.a[1] + j);
      store(panel.da[1] + j, load<Real>(panel.da[1] + j) * ((one - g) * (one + g)));
    }
  }
};

// Blocks z, which is the input itself, f and the auxiliary pre-activation.
template <class Real, class Gate> struct Minimal : OneStage<Real> {
  static constexpr bool direct = true;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    const ForgetForward<Real, Gate> gate(panel.a[1], panel.a[2], panel.size, panel.scratch, parameters);
    towards<Real>(panel, gate, panel.a[0]);
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    towards_backward<Real, Gate>(panel, parameters, 1, 0, 2);
  }
};

GATEDRNN_DEFINE_CELL(ugrnn, Ugrnn)
GATEDRNN_DEFINE_CELL(minimal_rnn, Minimal)

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
