// The elementwise part of the GRU. Equations: cells/gru.py.
#include "cells.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Blocks: input part of n, r, z, the auxiliary pre-activation where the gate has one, hidden part of n.
template <class Real, class Gate> struct Gru : OneStage<Real> {
  static constexpr bool direct = true;
  static constexpr int hidden = Gate::preactivations == 2 ? 4 : 3;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    logistic_pass<Real>(panel.a[1], panel.size);
    ForgetForward<Real, Gate> gate(panel.a[2], panel.a[3], panel.size, panel.scratch, parameters);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes)
      store(panel.a[0] + j, tanh<Real>(load<Real>(panel.a[0] + j) + load<Real>(panel.a[1] + j) * load<Real>(panel.a[hidden] + j)));
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      auto forget = gate(j);
      Vec<Real> n = load<Real>(panel.a[0] + j), h = load(panel.h_previous + j);
      store(panel.h + j, h + forget.complement * (n - h));
    }
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    ForgetBackward<Real, Gate> gate(panel.a[2], panel.a[3], panel.size, panel.scratch, parameters);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> n = load(panel.a[0] + j), r = load(panel.a[1] + j), n_hidden = load(panel.a[hidden] + j);
      auto forget = gate(j);
      Vec<Real> dh = load(panel.dh + j);
      Vec<Real> df = dh * (load(panel.h_previous + j) - n);
      Vec<Real> dn = dh * forget.complement * ((one - n) * (one + n));
      store(panel.da[0] + j, dn);
      store(panel.da[1] + j, dn * n_hidden * (r * (one - r)));
      store(panel.da[2] + j, df * forget.slope);
      if constexpr (Gate::preactivations == 2) store(panel.da[3] + j, df * forget.slope_aux);
      store(panel.da[hidden] + j, dn * r);
      store(panel.dh + j, dh * forget.value);
    }
  }
};

GATEDRNN_DEFINE_CELL(gru, Gru)

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
