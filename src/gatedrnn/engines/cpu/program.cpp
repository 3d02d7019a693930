#include "program_text.h"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace gatedrnn {
namespace {

struct OperationFacts {
  const char* name;
  int operands;
};
#define GATEDRNN_FACT(NAME, text, operands) {text, operands},
constexpr OperationFacts operation_facts[] = {GATEDRNN_OPERATIONS(GATEDRNN_FACT)};
#undef GATEDRNN_FACT

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("the gate program is damaged: " + what + "."); }

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

int64_t operation_named(const std::string& name) {
  for (int64_t i = 0; i < GATEDRNN_OPERATION_COUNT; ++i)
    if (name == operation_facts[i].name) return i;
  refuse("unknown operation " + name);
}

// "12": register 12, one of `known`; "#3ff0000000000000": the bits of a double.
ProgramOperand operand_of(const std::string& text, int64_t known) {
  const bool constant = !text.empty() && text[0] == '#';
  const std::string digits = constant ? text.substr(1) : text;
  const unsigned base = constant ? 16 : 10;
  if (digits.empty() || digits.size() > 16 || (constant && digits.size() != 16)) refuse("operand " + text);
  uint64_t number = 0;
  for (char c : digits) {
    const unsigned digit = c >= '0' && c <= '9' ? unsigned(c - '0') : c >= 'a' && c <= 'f' ? unsigned(c - 'a') + 10 : 99;
    if (digit >= base) refuse("operand " + text);
    number = number * base + digit;
  }
  ProgramOperand operand{-1, 0.0};
  if (constant)
    std::memcpy(&operand.constant, &number, sizeof number);
  else if (number >= uint64_t(known))
    refuse("operand " + text + " before it is computed");
  else
    operand.slot = int64_t(number);
  return operand;
}

}  // namespace

ParsedProgram::ParsedProgram(const char* text, bool with_slope) {
  if (!text) refuse("it is missing");
  std::vector<std::string> lines = split(text, ';');
  const std::string last = lines.back();
  lines.pop_back();
  if (int64_t(lines.size()) > most_instructions) refuse("more than " + std::to_string(most_instructions) + " instructions");
  for (const std::string& line : lines) {
    const std::vector<std::string> words = split(line, ',');
    ProgramStep step{operation_named(words[0]), {{-1, 0.0}, {-1, 0.0}, {-1, 0.0}}, int64_t(steps_.size()) + 1};
    const int operands = operation_facts[step.operation].operands;
    if (int64_t(words.size()) != operands + 1) refuse("wrong number of operands in " + line);
    for (int k = 0; k < operands; ++k) step.operand[k] = operand_of(words[size_t(k) + 1], step.result);
    const double exponent = step.operand[1].constant;
    if (step.operation == GATEDRNN_OP_POWI &&
        (step.operand[1].slot >= 0 || !(exponent >= -most_power && exponent <= most_power) || exponent != double(int64_t(exponent))))
      refuse("powi needs a whole constant");
    steps_.push_back(step);
  }
  const std::vector<std::string> results = split(last, ',');
  if (results.size() != 3 || results[0] != "=") refuse("no results");
  const int64_t known = int64_t(steps_.size()) + 1;
  int64_t outputs[2];
  for (int k = 0; k < 2; ++k) {
    const ProgramOperand output = operand_of(results[size_t(k) + 1], known);
    if (output.slot < 0) refuse("a result is a constant");
    outputs[k] = output.slot;
  }
  number_anew(outputs, with_slope ? 2 : 1);
}

// Leaves out what the results do not need, and lets registers share a place where one is not needed any more.
void ParsedProgram::number_anew(const int64_t (&outputs)[2], int count) {
  constexpr int64_t never = -1;
  const int64_t end = int64_t(steps_.size());
  std::vector<int64_t> last_use(size_t(end) + 1, never), slot(size_t(end) + 1, never), free_slots;
  for (int k = 0; k < count; ++k) last_use[size_t(outputs[k])] = end;
  for (int64_t i = end; i-- > 0;) {
    if (last_use[size_t(steps_[size_t(i)].result)] == never) continue;
    for (const ProgramOperand& operand : steps_[size_t(i)].operand)
      if (operand.slot >= 0 && last_use[size_t(operand.slot)] == never) last_use[size_t(operand.slot)] = i;
  }
  slot[0] = 0;
  int64_t registers = 0;
  std::vector<ProgramStep> kept;
  for (int64_t i = 0; i < end; ++i) {
    ProgramStep step = steps_[size_t(i)];
    if (last_use[size_t(step.result)] == never) continue;
    // An instruction may write over its own operand: each vector is read before it is written.
    std::vector<int64_t> released;
    for (ProgramOperand& operand : step.operand) {
      if (operand.slot < 0) continue;
      const int64_t number = operand.slot;
      operand.slot = slot[size_t(number)];
      if (number > 0 && last_use[size_t(number)] == i) {
        last_use[size_t(number)] = never;  // once, however often it is an operand
        released.push_back(operand.slot);
      }
    }
    free_slots.insert(free_slots.end(), released.begin(), released.end());
    int64_t& place = slot[size_t(step.result)];
    if (free_slots.empty()) {
      place = ++registers;
    } else {
      place = free_slots.back();
      free_slots.pop_back();
    }
    step.result = place;
    kept.push_back(step);
  }
  if (registers > most_registers)
    throw std::invalid_argument("the gate program needs more than " + std::to_string(most_registers) + " registers.");
  steps_ = std::move(kept);
  program = {steps_.data(), int64_t(steps_.size()), registers, count, {slot[size_t(outputs[0])], count > 1 ? slot[size_t(outputs[1])] : 0}};
}

}  // namespace gatedrnn
