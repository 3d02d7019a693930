// A gate program as text: instructions separated by ";", words by ",". Instruction k writes register k + 1; register 0 is
// z. An operand is a register or a constant, "#" and the sixteen digits of a double's bits. The last entry names the
// registers of s = alpha(z) and of alpha'(z): "mul,0,0;mul,1,0;add,0,2;...;=,3,5".
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace gatedrnn {

class ParsedProgram {
 public:
  // Throws std::invalid_argument for what is no program. Without the slope only what s needs is left.
  ParsedProgram(const char* text, bool with_slope);
  ParsedProgram(const ParsedProgram&) = delete;
  ParsedProgram& operator=(const ParsedProgram&) = delete;

  GateProgram program;

 private:
  static constexpr int64_t most_instructions = 256;
  static constexpr double most_power = 64;
  void number_anew(const int64_t (&outputs)[2], int count);
  std::vector<ProgramStep> steps_;
};

}  // namespace gatedrnn
