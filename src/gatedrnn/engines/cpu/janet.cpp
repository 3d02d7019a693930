// The elementwise part of JANET. Equations: cells/janet.py.
#include "cells.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Blocks f, g and the auxiliary pre-activation of the gate where it has one.
template <class Real, class Gate> struct Janet : OneStage<Real> {
  static constexpr bool direct = true;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    ForgetForward<Real, Gate> gate(panel.a[0], panel.a[2], panel.size, panel.scratch, parameters);
    tanh_pass<Real>(panel.a[1], panel.a[1], panel.size);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      auto forget = gate(j);
      Vec<Real> i = forget.complement / denominator(forget.complement, forget.value, parameters.odds);
      Vec<Real> g = load<Real>(panel.a[1] + j), h = load(panel.h_previous + j);
      store(panel.h + j, remembered<Real>(forget, h, i * g));
    }
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    ForgetBackward<Real, Gate> gate(panel.a[0], panel.a[2], panel.size, panel.scratch, parameters);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> g = load(panel.a[1] + j);
      auto forget = gate(j);
      Vec<Real> inverse = one / denominator(forget.complement, forget.value, parameters.odds);
      Vec<Real> i = forget.complement * inverse;
      Vec<Real> dh = load(panel.dh + j);
      // di/df = -e^-beta / (q + e^-beta f)^2
      Vec<Real> df = dh * (load(panel.h_previous + j) - g * (parameters.odds * inverse * inverse));
      store(panel.da[0] + j, df * forget.slope);
      store(panel.da[1] + j, dh * i * ((one - g) * (one + g)));
      if constexpr (Gate::preactivations == 2) store(panel.da[2] + j, df * forget.slope_aux);
      store(panel.dh + j, dh * forget.value);
    }
  }

 private:
  // Not 0 even where q is 0 and e^-beta underflows: i = q / denominator is 0 there.
  static GATEDRNN_INLINE Vec<Real> denominator(Vec<Real> q, Vec<Real> f, Real odds) {
    return at_least<Real>(q + odds * f, sizeof(Real) == 4 ? Real(1.2e-38) : Real(2.3e-308));
  }
};

GATEDRNN_DEFINE_CELL(janet, Janet)

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
