// Plain data shared by the library's entry points and the kernels of every instruction set. No functions: code
// in a header would be compiled for several instruction sets under one name.
#pragma once
#include "abi.h"

namespace gatedrnn {

constexpr int most_blocks = 5;
constexpr int64_t most_registers = 64;  // of a gate program at a time

// Where a block (facts.h) comes from: its row blocks in two of the scan's weights and biases, or -1.
struct BlockSource {
  int input, hidden, input_bias, hidden_bias;
  GatedrnnWeight weight_ih, weight_hh, bias_ih, bias_hh;
};

struct CellLayout {
  int blocks;
  BlockSource source[most_blocks];
  int copied;        // blocks [0, copied), one or none, are the input itself
  int hidden_begin;  // blocks [hidden_begin, blocks) read h, from late_begin on what the cell makes of it
  int late_begin;
  int input_begin, input_end;  // blocks [input_begin, input_end) multiply the input by weights
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

// A gate program, its registers numbered anew so that few are needed. Register 0 is z.
struct ProgramOperand {
  int64_t slot;  // -1: a constant
  double constant;
};
struct ProgramStep {
  int64_t operation;
  ProgramOperand operand[3];
  int64_t result;
};
struct GateProgram {
  const ProgramStep* steps;
  int64_t count, registers;
  int64_t output_count, output[2];  // registers that hold s = alpha(z) and, if wanted, alpha'(z)
};

struct Plan {
  CellLayout layout;
  const GateProgram* program;  // null unless the gate is one
  bool one_step;               // few rows and one step of time: threads share the hidden units, and there are no slices
  int64_t slices, threads;
  const Slice* slice;
  int64_t most_rows;  // of a slice
  // With few rows or large weights, the threads of a slice share its hidden units: a team, which meets after each step.
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
               const void* aux, void* value, void* complement, void* slope, void* slope_aux, const GateProgram* program);
  // alpha and alpha' alone, as the program gives them.
  void (*program)(int64_t dtype, const GateProgram& program, int64_t n, const void* z, void* alpha, void* slope);
  // The phases of a call of one step: step.h.
  int64_t (*step_bytes)(const Call&, bool backward);
  void (*step_forward[2])(const Call&, int64_t thread);
  void (*step_backward[3])(const Call&, int64_t thread);
};

}  // namespace gatedrnn
