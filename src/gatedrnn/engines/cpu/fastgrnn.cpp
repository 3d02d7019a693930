// The elementwise part of FastGRNN. Equations: cells/fastgrnn.py.
#include "cells.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Blocks zeta and nu, which are a bias alone, f, h and the auxiliary pre-activation of the gate where it has one.
template <class Real, class Gate> struct Kusupati : OneStage<Real> {
  static constexpr bool direct = true;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    const ForgetForward<Real, Gate> gate(panel.a[2], panel.a[4], panel.size, panel.scratch, parameters);
    logistic_pass<Real>(panel.a[0], panel.size);
    logistic_pass<Real>(panel.a[1], panel.size);
    tanh_pass<Real>(panel.a[3], panel.a[3], panel.size);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      auto forget = gate(j);
      Vec<Real> share = load<Real>(panel.a[0] + j) * forget.complement + load<Real>(panel.a[1] + j);
      Vec<Real> h = load(panel.h_previous + j);
      store(panel.h + j, remembered<Real>(forget, h, share * load<Real>(panel.a[3] + j)));
    }
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    const ForgetBackward<Real, Gate> gate(panel.a[2], panel.a[4], panel.size, panel.scratch, parameters);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      auto forget = gate(j);
      Vec<Real> zeta = load(panel.a[0] + j), nu = load(panel.a[1] + j), candidate = load(panel.a[3] + j);
      Vec<Real> dh = load<Real>(panel.dh + j), dshare = dh * candidate;
      Vec<Real> df = dh * load(panel.h_previous + j) - dshare * zeta;
      store(panel.da[0] + j, dshare * forget.complement * (zeta * (one - zeta)));
      store(panel.da[1] + j, dshare * (nu * (one - nu)));
      store(panel.da[2] + j, df * forget.slope);
      store(panel.da[3] + j, dh * (zeta * forget.complement + nu) * ((one - candidate) * (one + candidate)));
      if constexpr (Gate::preactivations == 2) store(panel.da[4] + j, df * forget.slope_aux);
      store(panel.dh + j, dh * forget.value);
    }
  }
};

GATEDRNN_DEFINE_CELL(fastgrnn, Kusupati)

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
