// The table of kernels of one instruction set. This file, lstm.cpp, gru.cpp and janet.cpp are compiled once for each.
#include "backward.h"
#include "pack.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {
namespace {

template <class Real, class Gate>
void sweep(const GateParameters<Real>& parameters, int64_t n, const Real* z, const Real* aux, Real* value, Real* complement, Real* slope,
           Real* slope_aux) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  for (int64_t at = 0; at < n; at += lanes) {
    const size_t bytes = size_t(smaller(lanes, n - at)) * sizeof(Real);
    Vec<Real> first = {}, second = {};
    __builtin_memcpy(&first, z + at, bytes);
    if (Gate::preactivations == 2) __builtin_memcpy(&second, aux + at, bytes);
    Vec<Real> kept = Gate::template kept<Real>(first, parameters);
    auto parts = Gate::template parts<Real>(kept, second, parameters);
    auto slopes = Gate::template slopes<Real>(kept, second, parameters);
    __builtin_memcpy(value + at, &parts.value, bytes);
    __builtin_memcpy(complement + at, &parts.complement, bytes);
    __builtin_memcpy(slope + at, &slopes.slope, bytes);
    if (Gate::preactivations == 2) __builtin_memcpy(slope_aux + at, &slopes.slope_aux, bytes);
  }
}

template <class Real> decltype(&sweep<Real, Sigmoid>) sweep_of(GatedrnnGate gate) {
  switch (gate) {
#define GATEDRNN_CASE(NAME, text, Gate, ...) \
  case GATEDRNN_##NAME: return sweep<Real, Gate>;
    GATEDRNN_GATES(GATEDRNN_CASE)
#undef GATEDRNN_CASE
    case GATEDRNN_GATE_COUNT: break;
  }
  __builtin_trap();
}

template <class Real>
void gate_of(GatedrnnGate gate, int64_t count, const double* coefficients, int64_t n, const void* z, const void* aux, void* value,
             void* complement, void* slope, void* slope_aux) {
  constexpr int64_t most = 64;  // checked by the caller
  Real own[most];
  for (int64_t k = 0; k < count; ++k) own[k] = Real(coefficients[k]);
  GateParameters<Real> parameters{own, count};
  auto run = sweep_of<Real>(gate);
  run(parameters, n, static_cast<const Real*>(z), static_cast<const Real*>(aux), static_cast<Real*>(value),
      static_cast<Real*>(complement), static_cast<Real*>(slope), static_cast<Real*>(slope_aux));
}

void gate(int64_t dtype, int64_t gate, int64_t count, const double* coefficients, int64_t n, const void* z, const void* aux, void* value,
          void* complement, void* slope, void* slope_aux) {
  (dtype == GATEDRNN_FLOAT32 ? gate_of<float> : gate_of<double>)(GatedrnnGate(gate), count, coefficients, n, z, aux, value, complement, slope,
                                                                   slope_aux);
}

int64_t panel_width(int64_t dtype) { return dtype == GATEDRNN_FLOAT32 ? Tile<float>::width : Tile<double>::width; }

// A phase of a call for the dtype of its scan.
#define GATEDRNN_PHASE(name, function, backward)                                            \
  void name(const Call& call, int64_t thread) {                                             \
    if (call.scan->dtype == GATEDRNN_FLOAT32)                                               \
      function<float>(Task<float>(call, backward), thread);                                 \
    else                                                                                    \
      function<double>(Task<double>(call, backward), thread);                               \
  }
GATEDRNN_PHASE(pack_forward, pack_for_forward, false)
GATEDRNN_PHASE(pack_backward, pack_for_backward, true)
GATEDRNN_PHASE(forward, forward_thread, false)
GATEDRNN_PHASE(backward, backward_thread, true)
GATEDRNN_PHASE(reduce_gradients, reduce_thread, true)
#undef GATEDRNN_PHASE

int64_t bytes(const Call& call, bool backward) {
  return call.scan->dtype == GATEDRNN_FLOAT32 ? Task<float>(call, backward).total_bytes : Task<double>(call, backward).total_bytes;
}
int64_t forward_bytes(const Call& call) { return bytes(call, false); }
int64_t backward_bytes(const Call& call) { return bytes(call, true); }

}  // namespace

#define GATEDRNN_TEXT(x) #x
#define GATEDRNN_NAME(x) GATEDRNN_TEXT(x)
extern const Kernels kernels;
const Kernels kernels = {GATEDRNN_NAME(GATEDRNN_ISA), panel_width, forward_bytes, backward_bytes, pack_forward, pack_backward, forward,
                         backward, reduce_gradients, gate};

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
