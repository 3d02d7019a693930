// The elementwise part of the LSTM, untied and tied. Equations: cells/lstm.py.
#include "cells.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Blocks i, f, g, o and the auxiliary pre-activation of the gate where it has one.
template <class Real, class Gate> struct Untied {
  static constexpr bool direct = false;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> i = logistic<Real>(load(panel.a[0] + j));
      auto forget = forget_forward<Real, Gate>(panel.a[1] + j, panel.a[4] + j, parameters);
      Vec<Real> g = tanh<Real>(load(panel.a[2] + j));
      Vec<Real> o = logistic<Real>(load(panel.a[3] + j));
      Vec<Real> c = load<Real>(panel.c + j);
      c = c + (i * g - forget.complement * c);
      store(panel.a[0] + j, i);
      store(panel.a[2] + j, g);
      store(panel.a[3] + j, o);
      store(panel.c + j, c);
      store(panel.h + j, o * tanh<Real>(c));
    }
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> i = load(panel.a[0] + j), g = load(panel.a[2] + j), o = load(panel.a[3] + j);
      auto forget = forget_backward<Real, Gate>(panel.a[1] + j, panel.a[4] + j, parameters);
      Vec<Real> c_previous = load(panel.c_previous + j), tanh_c = tanh<Real>(load(panel.c + j));
      Vec<Real> dh = load(panel.dh + j);
      Vec<Real> dc = load(panel.dc + j) + dh * o * ((one - tanh_c) * (one + tanh_c));
      if (panel.h) store(panel.h + j, o * tanh_c);
      store(panel.da[0] + j, dc * g * (i * (one - i)));
      store(panel.da[1] + j, dc * c_previous * forget.slope);
      store(panel.da[2] + j, dc * i * ((one - g) * (one + g)));
      store(panel.da[3] + j, dh * tanh_c * (o * (one - o)));
      if constexpr (Gate::preactivations == 2) store(panel.da[4] + j, dc * c_previous * forget.slope_aux);
      store(panel.dc + j, dc * forget.value);
    }
  }
};

// Blocks f, g, o and the auxiliary pre-activation.
template <class Real, class Gate> struct Tied {
  static constexpr bool direct = false;
  static void forward(const ForwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      auto forget = forget_forward<Real, Gate>(panel.a[0] + j, panel.a[3] + j, parameters);
      Vec<Real> g = tanh<Real>(load(panel.a[1] + j));
      Vec<Real> o = logistic<Real>(load(panel.a[2] + j));
      Vec<Real> c = load<Real>(panel.c + j);
      c = c + forget.complement * (g - c);
      store(panel.a[1] + j, g);
      store(panel.a[2] + j, o);
      store(panel.c + j, c);
      store(panel.h + j, o * tanh<Real>(c));
    }
  }
  static void backward(const BackwardPanel<Real>& panel, const CellParameters<Real>& parameters) {
    constexpr Real one = 1;
    for (int64_t j = 0; j < panel.size; j += Tile<Real>::lanes) {
      Vec<Real> g = load(panel.a[1] + j), o = load(panel.a[2] + j);
      auto forget = forget_backward<Real, Gate>(panel.a[0] + j, panel.a[3] + j, parameters);
      Vec<Real> tanh_c = tanh<Real>(load(panel.c + j));
      Vec<Real> dh = load(panel.dh + j);
      Vec<Real> dc = load(panel.dc + j) + dh * o * ((one - tanh_c) * (one + tanh_c));
      Vec<Real> df = dc * (load(panel.c_previous + j) - g);
      if (panel.h) store(panel.h + j, o * tanh_c);
      store(panel.da[0] + j, df * forget.slope);
      store(panel.da[1] + j, dc * forget.complement * ((one - g) * (one + g)));
      store(panel.da[2] + j, dh * tanh_c * (o * (one - o)));
      if constexpr (Gate::preactivations == 2) store(panel.da[3] + j, df * forget.slope_aux);
      store(panel.dc + j, dc * forget.value);
    }
  }
};

template <> CellKernel<float> lstm_kernel(int64_t gate) { return kernel_for_gate<float, Untied>(gate); }
template <> CellKernel<double> lstm_kernel(int64_t gate) { return kernel_for_gate<double, Untied>(gate); }
template <> CellKernel<float> lstm_tied_kernel(int64_t gate) { return kernel_for_gate<float, Tied>(gate); }
template <> CellKernel<double> lstm_tied_kernel(int64_t gate) { return kernel_for_gate<double, Tied>(gate); }

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
