// The table of kernels of one instruction set. This file and the cells are compiled once for each.
#include "backward.h"
#include "nru.h"
#include "pack.h"
#include "step.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {
namespace {

// Room for two results of a vector and the registers of any program.
constexpr int64_t scratch_of_sweep = 2 * 64 + 8192;
static_assert(most_registers * 2 * 32 <= 8192, "see program_piece");

// A gate over n pre-activations, as the cells compute it, some vectors at a time.
template <class Real, class Gate>
void sweep(const CellParameters<Real>& parameters, int64_t n, const Real* z, const Real* aux, Real* value, Real* complement, Real* slope,
           Real* slope_aux, Real* scratch) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  for (int64_t at = 0; at < n; at += lanes) {
    const size_t bytes = size_t(smaller(lanes, n - at)) * sizeof(Real);
    Real first[lanes] = {}, second[lanes] = {};
    __builtin_memcpy(first, z + at, bytes);
    if (Gate::preactivations == 2) __builtin_memcpy(second, aux + at, bytes);
    const auto parts = ForgetForward<Real, Gate>(first, second, lanes, scratch, parameters)(0);
    const auto slopes = ForgetBackward<Real, Gate>(first, second, lanes, scratch, parameters)(0);
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
             void* complement, void* slope, void* slope_aux, const GateProgram* program) {
  constexpr int64_t most = 64;  // checked by the caller
  Real own[most], scratch[scratch_of_sweep];
  for (int64_t k = 0; k < count; ++k) own[k] = Real(coefficients[k]);
  CellParameters<Real> parameters{{own, count, program}, Real(1)};
  auto run = sweep_of<Real>(gate);
  run(parameters, n, static_cast<const Real*>(z), static_cast<const Real*>(aux), static_cast<Real*>(value),
      static_cast<Real*>(complement), static_cast<Real*>(slope), static_cast<Real*>(slope_aux), scratch);
}

void gate(int64_t dtype, int64_t gate, int64_t count, const double* coefficients, int64_t n, const void* z, const void* aux, void* value,
          void* complement, void* slope, void* slope_aux, const GateProgram* program) {
  (dtype == GATEDRNN_FLOAT32 ? gate_of<float> : gate_of<double>)(GatedrnnGate(gate), count, coefficients, n, z, aux, value, complement, slope,
                                                                   slope_aux, program);
}

template <class Real> void program_of(const GateProgram& program, int64_t n, const Real* z, Real* alpha, Real* slope) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  Real scratch[scratch_of_sweep];
  for (int64_t at = 0; at < n; at += lanes) {
    const size_t bytes = size_t(smaller(lanes, n - at)) * sizeof(Real);
    Real given[lanes] = {}, results[2][lanes];
    __builtin_memcpy(given, z + at, bytes);
    run_program<Real>(program, given, lanes, {results[0], results[1]}, scratch);
    __builtin_memcpy(alpha + at, results[0], bytes);
    __builtin_memcpy(slope + at, results[1], bytes);
  }
}

void program(int64_t dtype, const GateProgram& program, int64_t n, const void* z, void* alpha, void* slope) {
  if (dtype == GATEDRNN_FLOAT32)
    program_of<float>(program, n, static_cast<const float*>(z), static_cast<float*>(alpha), static_cast<float*>(slope));
  else
    program_of<double>(program, n, static_cast<const double*>(z), static_cast<double*>(alpha), static_cast<double*>(slope));
}

int64_t panel_width(int64_t dtype) { return dtype == GATEDRNN_FLOAT32 ? Tile<float>::width : Tile<double>::width; }

// A phase of a call for the cell and the dtype of its scan.
#define GATEDRNN_PHASE(name, function, of_nru, backward)                                    \
  template <class Real> void name##_of(const Call& call, int64_t thread) {                  \
    if (call.scan->cell == GATEDRNN_NRU)                                                    \
      of_nru<Real>(NruTask<Real>(call, backward), thread);                                  \
    else                                                                                    \
      function<Real>(Task<Real>(call, backward), thread);                                   \
  }                                                                                         \
  void name(const Call& call, int64_t thread) {                                             \
    (call.scan->dtype == GATEDRNN_FLOAT32 ? name##_of<float> : name##_of<double>)(call, thread); \
  }
GATEDRNN_PHASE(pack_forward, pack_for_forward, pack_nru, false)
GATEDRNN_PHASE(pack_backward, pack_for_backward, pack_nru, true)
GATEDRNN_PHASE(forward, forward_thread, nru_forward_thread, false)
GATEDRNN_PHASE(backward, backward_thread, nru_backward_thread, true)
GATEDRNN_PHASE(reduce_gradients, reduce_thread, nru_reduce_thread, true)
#undef GATEDRNN_PHASE

template <class Real> int64_t bytes_of(const Call& call, bool backward) {
  return call.scan->cell == GATEDRNN_NRU ? NruTask<Real>(call, backward).total_bytes : Task<Real>(call, backward).total_bytes;
}
int64_t bytes(const Call& call, bool backward) {
  return call.scan->dtype == GATEDRNN_FLOAT32 ? bytes_of<float>(call, backward) : bytes_of<double>(call, backward);
}
// A phase of a call of one step.
#define GATEDRNN_PHASE(name, function, backward)                                            \
  void name(const Call& call, int64_t thread) {                                             \
    if (call.scan->dtype == GATEDRNN_FLOAT32)                                               \
      function<float>(Step<float>(call, backward), thread);                                 \
    else                                                                                    \
      function<double>(Step<double>(call, backward), thread);                               \
  }
GATEDRNN_PHASE(step_forward_prepared, prepare_step, false)
GATEDRNN_PHASE(step_forward, forward_step, false)
GATEDRNN_PHASE(step_backward_prepared, prepare_step, true)
GATEDRNN_PHASE(step_elements, backward_elements, true)
GATEDRNN_PHASE(step_products, backward_products, true)
#undef GATEDRNN_PHASE
int64_t step_bytes(const Call& call, bool backward) {
  return call.scan->dtype == GATEDRNN_FLOAT32 ? Step<float>(call, backward).bytes : Step<double>(call, backward).bytes;
}

int64_t forward_bytes(const Call& call) { return bytes(call, false); }
int64_t backward_bytes(const Call& call) { return bytes(call, true); }

}  // namespace

#define GATEDRNN_TEXT(x) #x
#define GATEDRNN_NAME(x) GATEDRNN_TEXT(x)
extern const Kernels kernels;
const Kernels kernels = {GATEDRNN_NAME(GATEDRNN_ISA), panel_width, forward_bytes, backward_bytes, pack_forward, pack_backward, forward,
                         backward, reduce_gradients, gate, program, step_bytes,
                         {step_forward_prepared, step_forward}, {step_backward_prepared, step_elements, step_products}};

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
