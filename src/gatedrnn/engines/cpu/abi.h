// The C interface of the library: one description of a scan (one layer, one direction, all time steps), one
// function for each direction of the computation. library.py mirrors the structure field by field, and compares its
// version and size with the library's own when it loads it.
// Every number is 64 bits wide; every array is contiguous unless strides are given; strides count elements.
#pragma once
#include <stdint.h>

#include "facts.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GATEDRNN_ABI 5
#define GATEDRNN_API __attribute__((visibility("default")))

struct GatedrnnScan {
  int64_t dtype, cell, gate;
  int64_t steps, batch, inputs, hidden;
  int64_t recurrent;      // entries of h: proj_size, or hidden where there is no weight_hr; of the NRU hidden is the size of m
  int64_t reverse;        // each row starts at its own last step
  int64_t threads;        // forward and backward of one scan must agree
  int64_t segment;        // 0: keep every step; else keep the memory every `segment` steps and recompute
  int64_t kept_size;      // elements of `kept`, see gatedrnn_kept_size
  int64_t heads, relu;    // of the NRU
  int64_t coefficient_count;
  const double* coefficients;  // of the polynomial gate
  double odds;                 // e^-beta of JANET
  const char* program;         // of a gate of one's own: see program.cpp
  int64_t input_strides[3];        // time, row, feature
  int64_t grad_output_strides[2];  // time, row; features are contiguous
  int64_t grad_cells_strides[2];

  const int64_t* lengths;  // (batch) or null
  // Null, or (steps): packed sequences. Row r of step t is then row starts[t] + r of input, output, cells and their
  // gradients, which have no padding; the strides of time are not used.
  const int64_t* starts;
  const void* input;       // (steps, batch, inputs)
  const void* state[2];    // h (batch, recurrent) and, where the cell has two states, c (batch, hidden)
  // Null: there is none. Of the NRU weight_ih is W_h, over [x; h; m], and weight_hh has W_a, W_b, W_va, W_vb in this order.
  const void* weights[GATEDRNN_WEIGHT_COUNT];

  void* output;  // (steps, batch, recurrent); read by the backward
  void* final_state[2];
  void* cells;  // c at every step (steps, batch, hidden) or null
  void* kept;   // null: nothing is kept, no backward possible

  const void* grad_output;  // the incoming gradients may be null (zero)
  const void* grad_final_state[2];
  const void* grad_cells;
  void* grad_input;  // null: not wanted
  void* grad_state[2];
  void* grad_weights[GATEDRNN_WEIGHT_COUNT];
};

// All return 0, or 1 with the reason in gatedrnn_error() of the same thread.
GATEDRNN_API int gatedrnn_forward(const struct GatedrnnScan* scan);
GATEDRNN_API int gatedrnn_backward(const struct GatedrnnScan* scan);
// Value, complement and derivatives of a gate over n pre-activations (aux and slope_aux: refine only, else null).
GATEDRNN_API int gatedrnn_gate(int64_t dtype, int64_t gate, int64_t coefficient_count, const double* coefficients,
                  const char* program, int64_t n, const void* z, const void* aux, void* value, void* complement, void* slope, void* slope_aux);
// s = alpha(z) and alpha'(z) of a gate program.
GATEDRNN_API int gatedrnn_program(int64_t dtype, const char* program, int64_t n, const void* z, void* alpha, void* slope);
GATEDRNN_API const char* gatedrnn_error(void);
// The instruction set in use: "baseline", "avx2" or "avx512"; null with an error if the one forced by
// GATEDRNN_CPU_ISA is unknown or absent.
GATEDRNN_API const char* gatedrnn_isa(void);
GATEDRNN_API int gatedrnn_select_isa(const char* name);  // null or "": the environment variable, then the widest
GATEDRNN_API int64_t gatedrnn_panel_width(int64_t dtype);
GATEDRNN_API int64_t gatedrnn_kept_row(int64_t dtype, int64_t cell, int64_t gate, int64_t hidden, int64_t heads, int64_t recompute);
// Lends the library the threads of an OpenMP runtime with libgomp's interface: GOMP_parallel, omp_get_thread_num,
// omp_get_num_threads. Nulls: it starts its own for each call.
GATEDRNN_API void gatedrnn_borrow_threads(void* parallel, void* thread, void* threads);
// A buffer for `kept`, null if there is no memory; given back, it waits to be taken again.
GATEDRNN_API void* gatedrnn_take(int64_t bytes);
GATEDRNN_API void gatedrnn_give(void* buffer);
GATEDRNN_API int64_t gatedrnn_release(void);  // frees what waits; returns how many bytes that was
GATEDRNN_API int64_t gatedrnn_abi(void);
GATEDRNN_API int64_t gatedrnn_scan_size(void);  // bytes of GatedrnnScan
// The lists of facts.h, a line each: "dtypes ...", "weights ...", "operations ...", "gate <name> <pre-activations>",
// "cell <name> <row blocks> <states> <blocks>".
GATEDRNN_API const char* gatedrnn_facts(void);

#ifdef __cplusplus
}
#endif
