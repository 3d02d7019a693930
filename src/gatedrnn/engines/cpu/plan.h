// Plain data shared by the library's entry points and the kernels of every instruction set. No functions: code
// in a header would be compiled for several instruction sets under one name.
#pragma once
#include "abi.h"

namespace gatedrnn {

constexpr int most_blocks = 5;

// Where a block (facts.h) comes from: its row blocks in two of the scan's weights and biases, or -1. Blocks without a
// hidden part come first and blocks without an input part last, so both kinds are contiguous ranges.
struct BlockSource {
  int input, hidden;
  GatedrnnWeight weight_ih, weight_hh, bias_ih, bias_hh;
};

struct CellLayout {
  int blocks;
  BlockSource source[most_blocks];
  int hidden_begin;  // blocks [hidden_begin, blocks) read h
  int input_end;     // blocks [0, input_end) read the input
  bool memory;       // a state c beside h
};

// Rows of the batch that one thread takes through all time steps, longest first, so that the rows still active
// at a step are the first ones.
struct Slice {
  int64_t rows;
  int64_t first;            // rows of the slices before this one
  const int64_t* row;       // index in the batch
  const int64_t* length;
};

struct Plan {
  CellLayout layout;
  int64_t slices, threads;
  const Slice* slice;
  int64_t most_rows;  // of a slice
  // With fewer rows than threads, the threads of a slice share its hidden units: a team, which meets after each step.
  // Thread t is a member of the team t / team. Without teams, 1.
  int64_t team;
  void (*meet)(const Plan&, int64_t team);  // returns when all members have called it
  void* meetings;
};

struct Call {
  const GatedrnnScan* scan;
  const Plan* plan;
  char* space;  // workspace of all threads, `bytes` long as the kernel asked
};

// One instruction set's kernels. The three phases of a call run on every thread with a barrier between them.
struct Kernels {
  const char* name;
  int64_t (*panel_width)(int64_t dtype);
  int64_t (*forward_bytes)(const Call&);
  int64_t (*backward_bytes)(const Call&);
  void (*pack_forward)(const Call&, int64_t thread);
  void (*pack_backward)(const Call&, int64_t thread);
  void (*forward)(const Call&, int64_t thread);
  void (*backward)(const Call&, int64_t thread);
  void (*reduce)(const Call&, int64_t thread);
  void (*gate)(int64_t dtype, int64_t gate, int64_t coefficient_count, const double* coefficients, int64_t n, const void* z,
               const void* aux, void* value, void* complement, void* slope, void* slope_aux);
};

}  // namespace gatedrnn
