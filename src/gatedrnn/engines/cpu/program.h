// Gate programs: the interpreter. A program is a short list of elementwise instructions that give s = alpha(z) and
// alpha'(z); it is executed on a piece of a panel that stays in the first cache, one instruction after the other.
#pragma once
#include "functions.h"
#include "plan.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Elements that are worked on at a time: enough to make the choice of the instruction cheap, few enough for all
// registers of a program to stay in the first cache.
template <class Real> inline int64_t program_piece(int64_t registers) {
  constexpr int64_t bytes = 24576, most = 1024, lanes = Tile<Real>::lanes;
  const int64_t piece = bytes / int64_t(sizeof(Real)) / (registers + 1) / lanes * lanes;
  return piece < 2 * lanes ? 2 * lanes : piece > most ? most : piece;
}

template <class Real> struct Operand {
  const Real* at;
  int64_t step;  // 0 for a constant
  GATEDRNN_INLINE Vec<Real> next() {
    Vec<Real> value = load(at);
    at += step;
    return value;
  }
};

template <class Real, class Mask> GATEDRNN_INLINE Vec<Real> truth(Mask mask) { return mask ? splat<Real>(1) : Vec<Real>{}; }

template <class Real> void execute(const ProgramStep& step, const Operand<Real> (&operands)[3], Real* result, int64_t count) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  using V = Vec<Real>;
  auto each = [&](auto function) GATEDRNN_LAMBDA {
    Operand<Real> a = operands[0], b = operands[1], c = operands[2];
    for (int64_t j = 0; j < count; j += lanes) store(result + j, V(function(a, b, c)));
  };
#define GATEDRNN_ONE(NAME, expression) \
  case GATEDRNN_OP_##NAME: return each([](auto& first, auto&, auto&) GATEDRNN_LAMBDA { V a = first.next(); return V(expression); });
#define GATEDRNN_TWO(NAME, expression)                                     \
  case GATEDRNN_OP_##NAME:                                                    \
    return each([](auto& first, auto& second, auto&) GATEDRNN_LAMBDA {     \
      V a = first.next(), b = second.next();                               \
      return V(expression);                                                \
    });
  const V zero = {};
  switch (GatedrnnOperation(step.operation)) {
    GATEDRNN_ONE(COPY, a)
    GATEDRNN_ONE(NEG, -a)
    GATEDRNN_ONE(ABS, magnitude<Real>(a))
    GATEDRNN_ONE(SIGN, truth<Real>(a > Real(0)) - truth<Real>(a < Real(0)))
    GATEDRNN_ONE(RECIPROCAL, Real(1) / a)
    GATEDRNN_ONE(SQRT, square_root(a))
    GATEDRNN_ONE(RSQRT, Real(1) / square_root(a))
    GATEDRNN_ONE(EXP, exp_of(a))
    GATEDRNN_ONE(EXPM1, expm1_of(a))
    GATEDRNN_ONE(LOG, log_of(a))
    GATEDRNN_ONE(LOG1P, log1p_of(a))
    GATEDRNN_ONE(SINH, sinh_of(a))
    GATEDRNN_ONE(COSH, cosh_of(a))
    GATEDRNN_ONE(TANH, tanh_of(a))
    GATEDRNN_ONE(ASINH, asinh_of(a))
    GATEDRNN_ONE(SIGMOID, sigmoid_of(a))
    GATEDRNN_ONE(NOT, truth<Real>(a == Real(0)))
    GATEDRNN_TWO(ADD, a + b)
    GATEDRNN_TWO(SUB, a - b)
    GATEDRNN_TWO(MUL, a * b)
    GATEDRNN_TWO(DIV, a / b)
    GATEDRNN_TWO(MINIMUM, (a < b || a != a) ? a : b)
    GATEDRNN_TWO(MAXIMUM, (a > b || a != a) ? a : b)
    GATEDRNN_TWO(POW, power_of(a, b))
    GATEDRNN_TWO(EQ, truth<Real>(a == b))
    GATEDRNN_TWO(NE, truth<Real>(a != b))
    GATEDRNN_TWO(LT, truth<Real>(a < b))
    GATEDRNN_TWO(LE, truth<Real>(a <= b))
    GATEDRNN_TWO(GT, truth<Real>(a > b))
    GATEDRNN_TWO(GE, truth<Real>(a >= b))
    GATEDRNN_TWO(AND, truth<Real>(a != Real(0) && b != Real(0)))
    GATEDRNN_TWO(OR, truth<Real>(a != Real(0) || b != Real(0)))
    GATEDRNN_TWO(XOR, truth<Real>((a != Real(0)) != (b != Real(0))))
    case GATEDRNN_OP_POWI: {
      const int64_t n = int64_t(step.operand[1].constant);
      return each([n](auto& first, auto&, auto&) GATEDRNN_LAMBDA { return whole_power_of(first.next(), n); });
    }
    case GATEDRNN_OP_WHERE:
      return each([zero](auto& first, auto& second, auto& third) GATEDRNN_LAMBDA {
        V condition = first.next(), a = second.next(), b = third.next();
        return V(condition != zero ? a : b);
      });
    case GATEDRNN_OPERATION_COUNT: break;
  }
#undef GATEDRNN_ONE
#undef GATEDRNN_TWO
  __builtin_trap();
}

// Runs a program over `count` values of z (whole vectors). Results: outputs[k] for output k of the program.
// `registers` has room for the program's registers, a piece each.
template <class Real>
void run_program(const GateProgram& program, const Real* z, int64_t count, Real* const (&outputs)[2], Real* registers) {
  constexpr int64_t lanes = Tile<Real>::lanes;
  const int64_t piece = program_piece<Real>(program.registers);
  for (int64_t begin = 0; begin < count; begin += piece) {
    const int64_t size = count - begin < piece ? count - begin : piece;
    auto place = [&](int64_t slot) { return slot == 0 ? const_cast<Real*>(z) + begin : registers + (slot - 1) * piece; };
    for (int64_t i = 0; i < program.count; ++i) {
      const ProgramStep& step = program.steps[i];
      Operand<Real> operands[3];
      Real constants[3][lanes];
      for (int k = 0; k < 3; ++k) {
        const ProgramOperand& given = step.operand[k];
        if (given.slot < 0) {
          store(constants[k], splat<Real>(Real(given.constant)));
          operands[k] = {constants[k], 0};
        } else {
          operands[k] = {place(given.slot), lanes};
        }
      }
      execute<Real>(step, operands, place(step.result), size);
    }
    for (int64_t k = 0; k < program.output_count; ++k)
      __builtin_memcpy(outputs[k] + begin, place(program.output[k]), size_t(size) * sizeof(Real));
  }
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
