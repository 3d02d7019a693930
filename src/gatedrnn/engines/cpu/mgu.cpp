// The elementwise part of the MGU, in two stages: the candidate's product waits for the gate. Equations: cells/mgu.py.
#include "cells.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Blocks f, the auxiliary pre-activation of the gate where it has one, g, which is late and reads (1-f) h.
template <class Real, class Gate> struct Mgu {
  static constexpr bool direct = true;
  static constexpr int candidate = Gate::preactivations;
  // 1-f stays between the stages.
  static void early(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    const ForgetForward<Real, Gate> gate(panel.a[0], panel.a[1], panel.size, panel.scratch, parameters);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> complement = gate(j).complement;
      store(panel.between + j, complement);
      store(panel.gated + j, complement * load(panel.h_previous + j));
    }
  }
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>&) {
    tanh_pass<Real>(panel.a[candidate], panel.a[candidate], panel.size);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> h = load(panel.h_previous + j);
      store(panel.h + j, h + load<Real>(panel.between + j) * (load<Real>(panel.a[candidate] + j) - h));
    }
  }
  // 1-f and the direct part of df stay between the stages, the slopes in the places of da.
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    const ForgetBackward<Real, Gate> gate(panel.a[0], panel.a[1], panel.size, panel.scratch, parameters);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      auto forget = gate(j);
      Vec<Real> g = load(panel.a[candidate] + j), h = load(panel.h_previous + j), dh = load<Real>(panel.dh + j);
      store(panel.gated + j, forget.complement * h);
      store(panel.between + j, forget.complement);
      store(panel.partial + j, dh * (h - g));
      store(panel.da[candidate] + j, dh * forget.complement * ((one - g) * (one + g)));
      store(panel.da[0] + j, forget.slope);
      if constexpr (Gate::preactivations == 2) store(panel.da[1] + j, forget.slope_aux);
      store(panel.dh + j, dh * forget.value);
    }
  }
  static void late(const BackwardPanel<Real>& panel, const CellParameters<Real>&) {
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> dgated = load(panel.dgated + j), df = load<Real>(panel.partial + j) - dgated * load(panel.h_previous + j);
      store(panel.da[0] + j, df * load<Real>(panel.da[0] + j));
      if constexpr (Gate::preactivations == 2) store(panel.da[1] + j, df * load<Real>(panel.da[1] + j));
      store(panel.dh + j, load<Real>(panel.dh + j) + dgated * load<Real>(panel.between + j));
    }
  }
};

GATEDRNN_DEFINE_CELL(mgu, Mgu)

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
