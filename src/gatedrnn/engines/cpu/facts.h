// The gates, cells and weights that the library knows: each is listed here once, and enums, tables and dispatch are made
// from these lists. Python reads them at load (gatedrnn_facts).
#pragma once

// X(NAME, text, type in gates.h, pre-activations)
#define GATEDRNN_GATES(X)                         \
  X(SIGMOID, "sigmoid", Sigmoid, 1)               \
  X(SOFTSIGN, "softsign", Softsign, 1)            \
  X(FAST, "fast", Fast, 1)                        \
  X(ITERATED_FAST, "iterated_fast", IteratedFast, 1) \
  X(POLYNOMIAL, "polynomial", Polynomial, 1)      \
  X(REFINE, "refine", Refine, 2)                  \
  X(PROGRAM, "program", Program, 1)

// X(NAME, name, kernel in name's .cpp file, row blocks of its weights, states, late blocks, blocks...)
// A block is one pre-activation of all hidden units: {row block in weight_ih, row block in weight_hh}, -1 where it has no
// such part. A block that is the input itself, without weights and bias, is the first. Then come blocks with neither part,
// which are a bias alone (their rows of bias_ih come after the others), then blocks without a hidden part; blocks without an
// input part come last. The last of them may be late: they wait for the others and read what the cell makes of these and h,
// in place of h. The auxiliary pre-activation of a gate with two comes before blocks without an input part and before late
// ones.
#define GATEDRNN_INPUT_ITSELF {-2, -1}
#define GATEDRNN_FUSED_CELLS(X)                                               \
  X(LSTM, lstm, Untied, "i,f,g,o", 2, 0, {0, 0}, {1, 1}, {2, 2}, {3, 3})      \
  X(LSTM_TIED, lstm_tied, Tied, "f,g,o", 2, 0, {0, 0}, {1, 1}, {2, 2})        \
  X(GRU, gru, Gru, "r,f,n", 1, 0, {2, -1}, {0, 0}, {1, 1}, {-1, 2})           \
  X(JANET, janet, Janet, "f,g", 1, 0, {0, 0}, {1, 1})                         \
  X(UGRNN, ugrnn, Ugrnn, "f,g", 1, 0, {0, 0}, {1, 1})                         \
  X(MINIMAL_RNN, minimal_rnn, Minimal, "f", 1, 0, GATEDRNN_INPUT_ITSELF, {0, 0}) \
  X(FASTGRNN, fastgrnn, Kusupati, "f,h", 1, 0, {-1, -1}, {-1, -1}, {0, 0}, {1, 1}) \
  X(MGU, mgu, Mgu, "f,g", 1, 1, {0, 0}, {1, 1})
// The NRU has neither such blocks nor a gate, and its own time loop: nru.h.
#define GATEDRNN_CELLS(X) GATEDRNN_FUSED_CELLS(X) X(NRU, nru, Nru, "h", 2, 0)

// X(NAME, text): the weights by their place in GatedrnnScan.
#define GATEDRNN_WEIGHTS(X)            \
  X(WEIGHT_IH, "weight_ih")            \
  X(WEIGHT_HH, "weight_hh")            \
  X(BIAS_IH, "bias_ih")                \
  X(BIAS_HH, "bias_hh")                \
  X(WEIGHT_HR, "weight_hr")            \
  X(WEIGHT_IH_AUX, "weight_ih_aux")    \
  X(WEIGHT_HH_AUX, "weight_hh_aux")    \
  X(BIAS_IH_AUX, "bias_ih_aux")        \
  X(BIAS_HH_AUX, "bias_hh_aux")

// X(NAME, text, operands): the instructions of a gate program, which program.h executes.
#define GATEDRNN_OPERATIONS(X) \
  X(OP_COPY, "copy", 1) X(OP_NEG, "neg", 1) X(OP_ABS, "abs", 1) X(OP_SIGN, "sign", 1) X(OP_RECIPROCAL, "reciprocal", 1) \
  X(OP_SQRT, "sqrt", 1) X(OP_RSQRT, "rsqrt", 1) X(OP_EXP, "exp", 1) X(OP_EXPM1, "expm1", 1) X(OP_LOG, "log", 1) \
  X(OP_LOG1P, "log1p", 1) X(OP_SINH, "sinh", 1) X(OP_COSH, "cosh", 1) X(OP_TANH, "tanh", 1) X(OP_ASINH, "asinh", 1) \
  X(OP_SIGMOID, "sigmoid", 1) X(OP_NOT, "not", 1) X(OP_ADD, "add", 2) X(OP_SUB, "sub", 2) X(OP_MUL, "mul", 2) \
  X(OP_DIV, "div", 2) X(OP_MINIMUM, "minimum", 2) X(OP_MAXIMUM, "maximum", 2) X(OP_POW, "pow", 2) X(OP_POWI, "powi", 2) \
  X(OP_EQ, "eq", 2) X(OP_NE, "ne", 2) X(OP_LT, "lt", 2) X(OP_LE, "le", 2) X(OP_GT, "gt", 2) \
  X(OP_GE, "ge", 2) X(OP_AND, "and", 2) X(OP_OR, "or", 2) X(OP_XOR, "xor", 2) X(OP_WHERE, "where", 3)

#define GATEDRNN_DTYPES(X) X(FLOAT32, "float32", float) X(FLOAT64, "float64", double)

#define GATEDRNN_ENUMERATOR(NAME, ...) GATEDRNN_##NAME,
enum GatedrnnGate { GATEDRNN_GATES(GATEDRNN_ENUMERATOR) GATEDRNN_GATE_COUNT };
enum GatedrnnCell { GATEDRNN_CELLS(GATEDRNN_ENUMERATOR) GATEDRNN_CELL_COUNT };
enum GatedrnnOperation { GATEDRNN_OPERATIONS(GATEDRNN_ENUMERATOR) GATEDRNN_OPERATION_COUNT };
enum GatedrnnWeight { GATEDRNN_WEIGHTS(GATEDRNN_ENUMERATOR) GATEDRNN_WEIGHT_COUNT };
enum GatedrnnDtype { GATEDRNN_DTYPES(GATEDRNN_ENUMERATOR) GATEDRNN_DTYPE_COUNT };
#undef GATEDRNN_ENUMERATOR
