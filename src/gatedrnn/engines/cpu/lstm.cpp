// The elementwise part of the LSTM, untied and tied. Equations: cells/lstm.py.
#include "cells.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// h = o tanh c, the last pass of a step.
template <class Real> GATEDRNN_INLINE void output_pass(const ForwardPanel<Real>& panel, const Real* o) {
  for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) store(panel.h + j, load(o + j) * tanh<Real>(load<Real>(panel.c + j)));
}

// The gradients of c and of the output gate, the first passes backward; tanh c waits in the place of the latter.
template <class Real> GATEDRNN_INLINE void output_backward(const BackwardPanel<Real>& panel, const Real* gate, Real* da) {
  constexpr Real one = 1;
  tanh_pass<Real>(da, panel.c, panel.size);
  for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
    Vec<Real> o = load(gate + j), tanh_c = load<Real>(da + j), dh = load<Real>(panel.dh + j);
    if (panel.h) store(panel.h + j, o * tanh_c);
    store(panel.dc + j, load<Real>(panel.dc + j) + dh * o * ((one - tanh_c) * (one + tanh_c)));
    store(da + j, dh * tanh_c * (o * (one - o)));
  }
}

// Blocks i, f, g, o and the auxiliary pre-activation of the gate where it has one.
template <class Real, class Gate> struct Untied : OneStage<Real> {
  static constexpr bool direct = false;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    logistic_pass<Real>(panel.a[0], panel.size);
    ForgetForward<Real, Gate> gate(panel.a[1], panel.a[4], panel.size, panel.scratch, parameters);
    tanh_pass<Real>(panel.a[2], panel.a[2], panel.size);
    logistic_pass<Real>(panel.a[3], panel.size);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      auto forget = gate(j);
      Vec<Real> i = load<Real>(panel.a[0] + j), g = load<Real>(panel.a[2] + j), c = load<Real>(panel.c + j);
      store(panel.c + j, remembered<Real>(forget, c, i * g));
    }
    output_pass<Real>(panel, panel.a[3]);
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    output_backward<Real>(panel, panel.a[3], panel.da[3]);
    ForgetBackward<Real, Gate> gate(panel.a[1], panel.a[4], panel.size, panel.scratch, parameters);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> i = load(panel.a[0] + j), g = load(panel.a[2] + j);
      auto forget = gate(j);
      Vec<Real> dc = load<Real>(panel.dc + j), df = dc * load(panel.c_previous + j);
      store(panel.da[0] + j, dc * g * (i * (one - i)));
      store(panel.da[1] + j, df * forget.slope);
      store(panel.da[2] + j, dc * i * ((one - g) * (one + g)));
      if constexpr (Gate::preactivations == 2) store(panel.da[4] + j, df * forget.slope_aux);
      store(panel.dc + j, dc * forget.value);
    }
  }
};

// Blocks f, g, o and the auxiliary pre-activation.
template <class Real, class Gate> struct Tied : OneStage<Real> {
  static constexpr bool direct = false;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    ForgetForward<Real, Gate> gate(panel.a[0], panel.a[3], panel.size, panel.scratch, parameters);
    tanh_pass<Real>(panel.a[1], panel.a[1], panel.size);
    logistic_pass<Real>(panel.a[2], panel.size);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      auto forget = gate(j);
      Vec<Real> g = load<Real>(panel.a[1] + j), c = load<Real>(panel.c + j);
      store(panel.c + j, c + forget.complement * (g - c));
    }
    output_pass<Real>(panel, panel.a[2]);
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    output_backward<Real>(panel, panel.a[2], panel.da[2]);
    ForgetBackward<Real, Gate> gate(panel.a[0], panel.a[3], panel.size, panel.scratch, parameters);
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> g = load(panel.a[1] + j);
      auto forget = gate(j);
      Vec<Real> dc = load<Real>(panel.dc + j), df = dc * (load(panel.c_previous + j) - g);
      store(panel.da[0] + j, df * forget.slope);
      store(panel.da[1] + j, dc * forget.complement * ((one - g) * (one + g)));
      if constexpr (Gate::preactivations == 2) store(panel.da[3] + j, df * forget.slope_aux);
      store(panel.dc + j, dc * forget.value);
    }
  }
};

GATEDRNN_DEFINE_CELL(lstm, Untied)
GATEDRNN_DEFINE_CELL(lstm_tied, Tied)

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
