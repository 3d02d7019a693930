// Entry points of the library: checks, the plan of a call, its workspace, and the choice of the instruction set.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plan.h"
#include "program_text.h"
#include "pool.h"
#include "threads.h"

namespace gatedrnn {

namespace baseline { extern const Kernels kernels; }
#if defined(GATEDRNN_WITH_AVX)
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }
#endif

namespace {

thread_local std::string error_text;

std::vector<const Kernels*> kernels_of_this_machine() {  // the widest last
  std::vector<const Kernels*> found{&baseline::kernels};
#if defined(GATEDRNN_WITH_AVX)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2::kernels);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    found.push_back(&avx512::kernels);
#endif
  return found;
}

std::string names_of(const std::vector<const Kernels*>& kernels) {
  std::string names;
  for (const Kernels* some : kernels) names += (names.empty() ? "" : ", ") + std::string(some->name);
  return names;
}

// The kernels of this name, those of the widest instruction set for null or "".
const Kernels* choose(const char* name) {
  const auto found = kernels_of_this_machine();
  if (!name || !*name) return found.back();
  for (const Kernels* kernels : found)
    if (std::strcmp(kernels->name, name) == 0) return kernels;
  bool known = false;
  for (const char* some : {"baseline", "avx2", "avx512"}) known = known || std::strcmp(some, name) == 0;
  throw std::runtime_error(std::string(name) +
                           (known ? ": this machine lacks the instruction set" : ": unknown instruction set; known: baseline, avx2, avx512") +
                           "; this machine runs: " + names_of(found));
}

const Kernels* choose_from_environment() {
  try {
    return choose(std::getenv("GATEDRNN_CPU_ISA"));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("GATEDRNN_CPU_ISA=" + std::string(error.what()));
  }
}

std::atomic<const Kernels*> selected{nullptr};

const Kernels& current() {
  const Kernels* kernels = selected.load();
  if (!kernels) {
    kernels = choose_from_environment();
    selected.store(kernels);
  }
  return *kernels;
}

struct GateFacts {
  const char* name;
  int preactivations;
};
#define GATEDRNN_FACT(NAME, text, Gate, preactivations) {text, preactivations},
constexpr GateFacts gate_facts[] = {GATEDRNN_GATES(GATEDRNN_FACT)};
#undef GATEDRNN_FACT

struct CellFacts {
  const char *name, *rows;
  int states;
  size_t late;
  std::vector<std::pair<int, int>> blocks;
};
#define GATEDRNN_FACT(NAME, name, Kernel, rows, states, late, ...) {#name, rows, states, late, {__VA_ARGS__}},
const CellFacts cell_facts[] = {GATEDRNN_CELLS(GATEDRNN_FACT)};
#undef GATEDRNN_FACT

bool has_aux(int64_t gate) { return gate_facts[gate].preactivations == 2; }

CellLayout layout_of(int64_t cell, int64_t gate) {
  const CellFacts& facts = cell_facts[cell];
  CellLayout layout{};
  const int rows = 1 + int(std::count(facts.rows, facts.rows + std::strlen(facts.rows), ','));
  auto add = [&](int input, int hidden) {
    constexpr int itself[2] = GATEDRNN_INPUT_ITSELF;
    if (input == itself[0]) {
      layout.source[layout.blocks++] = {-1, -1, -1, -1, GATEDRNN_WEIGHT_IH, GATEDRNN_WEIGHT_HH, GATEDRNN_BIAS_IH, GATEDRNN_BIAS_HH};
      layout.copied = layout.input_begin = layout.blocks;
      return;
    }
    const bool alone = input < 0 && hidden < 0;  // a bias alone
    const int bias = alone ? rows + layout.blocks - layout.copied : input;
    layout.source[layout.blocks++] = {input,  hidden, bias, hidden, GATEDRNN_WEIGHT_IH, GATEDRNN_WEIGHT_HH, GATEDRNN_BIAS_IH,
                                      GATEDRNN_BIAS_HH};
    if (alone) layout.input_begin = layout.blocks;
  };
  bool aux = has_aux(gate);
  auto add_aux = [&] {
    if (!aux) return;
    layout.source[layout.blocks++] = {0, 0, 0, 0, GATEDRNN_WEIGHT_IH_AUX, GATEDRNN_WEIGHT_HH_AUX, GATEDRNN_BIAS_IH_AUX, GATEDRNN_BIAS_HH_AUX};
    layout.input_end = layout.blocks;
    aux = false;
  };
  const size_t early = facts.blocks.size() - facts.late;
  for (size_t place = 0; place < facts.blocks.size(); ++place) {
    const auto [input, hidden] = facts.blocks[place];
    const bool only_hidden = input < 0 && hidden >= 0;
    if (only_hidden || place >= early) add_aux();
    if (place == early) layout.late_begin = layout.blocks;
    if (hidden < 0) layout.hidden_begin = layout.blocks + 1;
    add(input, hidden);
    if (!only_hidden) layout.input_end = layout.blocks;
  }
  add_aux();
  if (!facts.late) layout.late_begin = layout.blocks;
  layout.memory = facts.states == 2;
  return layout;
}

// Pre-activations of the NRU's second stage: alpha, beta and two vectors for each of the outer products, whose entries
// fill all heads.
int64_t late_of_nru(int64_t memory, int64_t heads) { return 2 * heads + 4 * int64_t(std::lround(std::sqrt(double(memory * heads)))); }

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

void check_kind(int64_t dtype, int64_t cell, int64_t gate) {
  require(dtype >= 0 && dtype < GATEDRNN_DTYPE_COUNT, "unknown dtype.");
  require(cell >= 0 && cell < GATEDRNN_CELL_COUNT, "unknown cell.");
  require(gate >= 0 && gate < GATEDRNN_GATE_COUNT, "unknown gate.");
}

// Whether the scan is one step of so few rows that it has kernels of its own (step.h). Forward and backward must agree.
bool is_one_step(const GatedrnnScan& scan) {
  constexpr int64_t most_rows = 64;
  const bool plain = scan.cell == GATEDRNN_LSTM || scan.cell == GATEDRNN_LSTM_TIED || scan.cell == GATEDRNN_GRU || scan.cell == GATEDRNN_JANET ||
                     scan.cell == GATEDRNN_UGRNN || scan.cell == GATEDRNN_MINIMAL_RNN || scan.cell == GATEDRNN_FASTGRNN;
  return plain && scan.steps == 1 && scan.batch <= most_rows && !scan.lengths && !scan.starts && !scan.segment &&
         !scan.weights[GATEDRNN_WEIGHT_HR];
}

void check_heads(int64_t memory, int64_t heads) {
  constexpr int64_t most = 1 << 20;
  require(heads > 0 && heads <= most && memory <= most, "the NRU's memory and heads must be positive and at most 2^20.");
  const int64_t factor = (late_of_nru(memory, heads) - 2 * heads) / 4;
  require(factor * factor == memory * heads, "the NRU's memory times its heads must be a square.");
}

// The batch cut into slices, and the slices' rows and lengths.
struct OwnedPlan {
  Plan plan;
  std::vector<Slice> slices;
  std::vector<int64_t> rows, lengths;

  std::vector<Meeting> meetings;
  std::optional<ParsedProgram> program;

  OwnedPlan(const GatedrnnScan& scan, int64_t panel_width, bool backward) {
    // More rows than this in a slice fall out of the cache between two uses; less work than this per thread
    // is done before a second thread has started.
    constexpr int64_t most_rows_of_slice = 64;
    constexpr double least_work = 2e6, least_work_of_one_step = 3e5;  // which reads every weight once
    constexpr int64_t most_threads = 1024;  // OpenMP keeps the threads of a team on the stack of the caller
    const int64_t batch = scan.batch;
    plan.layout = layout_of(scan.cell, scan.gate);
    plan.program = nullptr;
    if (scan.gate == GATEDRNN_PROGRAM) {
      program.emplace(scan.program, backward);
      plan.program = &program->program;
    }
    const double rows_of_weights = scan.cell == GATEDRNN_NRU ? double(scan.recurrent + late_of_nru(scan.hidden, scan.heads))
                                                             : double(plan.layout.blocks) * double(scan.hidden);
    const double work = 2.0 * double(scan.steps) * double(batch) * rows_of_weights * double(scan.recurrent + scan.inputs);
    plan.one_step = is_one_step(scan);
    const int64_t useful = std::max<int64_t>(1, int64_t(std::min(work / (plan.one_step ? least_work_of_one_step : least_work), 1e6)));
    if (plan.one_step) {
      plan.threads = std::min({scan.threads, useful, (scan.hidden + panel_width - 1) / panel_width, most_threads});
      plan.team = 1;
      return;
    }
    const int64_t available = std::max<int64_t>(1, std::min({scan.threads, useful, most_threads}));
    plan.team = members_of_team(scan, panel_width, available);
    plan.threads = std::min(batch, available / plan.team);
    const int64_t rounds = (batch + plan.threads * most_rows_of_slice - 1) / (plan.threads * most_rows_of_slice);
    plan.slices = std::min(batch, plan.threads * rounds);

    std::vector<int64_t> order(static_cast<size_t>(batch));
    std::iota(order.begin(), order.end(), int64_t(0));
    auto length = [&](int64_t row) { return scan.lengths ? scan.lengths[row] : scan.steps; };
    bool ragged = false;
    for (int64_t row = 0; row < batch; ++row) {
      require(length(row) >= 1 && length(row) <= scan.steps, "every length must be between 1 and the number of time steps.");
      ragged = ragged || length(row) != scan.steps;
    }
    std::vector<std::vector<int64_t>> dealt(static_cast<size_t>(plan.slices));
    if (ragged) {
      // Longest first, dealt out to and fro, so that all slices have about the same number of row steps.
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
      for (int64_t i = 0; i < batch; ++i) {
        const int64_t lap = i / plan.slices, place = i % plan.slices;
        dealt[size_t(lap % 2 ? plan.slices - 1 - place : place)].push_back(order[size_t(i)]);
      }
    } else {
      for (int64_t s = 0; s < plan.slices; ++s)
        for (int64_t row = s * batch / plan.slices; row < (s + 1) * batch / plan.slices; ++row) dealt[size_t(s)].push_back(row);
    }
    rows.reserve(size_t(batch));
    lengths.reserve(size_t(batch));
    plan.most_rows = 0;
    for (const auto& some : dealt) {
      slices.push_back({int64_t(some.size()), int64_t(rows.size()), nullptr, nullptr});
      for (int64_t row : some) {
        rows.push_back(row);
        lengths.push_back(length(row));
      }
      plan.most_rows = std::max(plan.most_rows, int64_t(some.size()));
    }
    for (Slice& slice : slices) {
      slice.row = rows.data() + slice.first;
      slice.length = lengths.data() + slice.first;
    }
    plan.slice = slices.data();
    plan.threads *= plan.team;
    if (plan.team > 1) {
      meetings = std::vector<Meeting>(size_t(plan.threads / plan.team));
      plan.meetings = meetings.data();
      plan.meet = [](const Plan& plan, int64_t team) { static_cast<Meeting*>(plan.meetings)[team].wait(plan.team); };
    }
  }

 private:
  // How many threads share the hidden units of the same rows. Fewer rows than threads leave threads over. With few rows and
  // weights beyond the nearer caches, which have to come anew at each step, each thread so needs only its part of them.
  // A step must be worth a meeting, and a member at least two panels.
  int64_t members_of_team(const GatedrnnScan& scan, int64_t panel_width, int64_t available) const {
    constexpr double least_work_of_step = 5e4, large_weights = 1e6;
    constexpr int64_t few_rows = 64;
    const double weights = double(plan.layout.blocks) * double(scan.hidden) * double(scan.recurrent);
    if (scan.cell == GATEDRNN_NRU || scan.weights[GATEDRNN_WEIGHT_HR] || 2 * weights < least_work_of_step) return 1;
    const double bytes = weights * (scan.dtype == GATEDRNN_FLOAT32 ? 4 : 8);
    const int64_t panels = (scan.hidden + panel_width - 1) / panel_width;
    const int64_t most = std::max<int64_t>(1, std::min(panels / 2, most_of_team));
    if (bytes >= large_weights && scan.batch <= few_rows) return std::min(available, most);
    return std::max<int64_t>(1, std::min(available / scan.batch, most));
  }
  static constexpr int64_t most_of_team = 8;
};

int64_t kept_row(const Kernels& kernels, int64_t dtype, int64_t cell, int64_t gate, int64_t hidden, int64_t heads, bool recompute) {
  if (cell == GATEDRNN_NRU) return hidden + (recompute ? 0 : late_of_nru(hidden, heads));
  const CellLayout layout = layout_of(cell, gate);
  const int64_t width = kernels.panel_width(dtype), padded = (hidden + width - 1) / width * width;
  return padded * (recompute ? layout.memory : layout.blocks + layout.memory);
}

// Products of sizes that would leave 64 bits are no sizes of arrays in memory.
int64_t product_of_sizes(std::initializer_list<int64_t> sizes) {
  int64_t total = 1;
  for (int64_t size : sizes) require(!__builtin_mul_overflow(total, size, &total), "the sizes are too large.");
  return total;
}

// Packed rows are stored one step after the other, the longest rows first: nothing may point outside of them.
void check_packed(const GatedrnnScan& scan) {
  require(scan.lengths != nullptr, "packed sequences need their lengths.");
  for (int64_t row = 1; row < scan.batch; ++row)
    require(scan.lengths[row] <= scan.lengths[row - 1], "packed rows must be sorted, the longest first.");
  int64_t rows = scan.batch, place = 0;
  for (int64_t step = 0; step < scan.steps; ++step) {
    while (rows > 0 && scan.lengths[rows - 1] <= step) --rows;
    require(rows > 0 && scan.starts[step] == place, "the starts of packed steps do not fit the lengths.");
    place += rows;
  }
}

// All weights and biases of the layout that cannot be left out: biases can, and so can those of no inputs.
template <class Pointer> void require_weights(const GatedrnnScan& scan, const CellLayout& layout, Pointer const* weights, const char* message) {
  if (scan.cell == GATEDRNN_NRU) require(weights[GATEDRNN_WEIGHT_IH] && weights[GATEDRNN_WEIGHT_HH], message);
  for (int block = 0; block < layout.blocks; ++block) {
    const BlockSource& source = layout.source[block];
    require(source.input < 0 || scan.inputs == 0 || weights[source.weight_ih], message);
    require(source.hidden < 0 || weights[source.weight_hh], message);
  }
}

void check_scan(const Kernels& kernels, const GatedrnnScan* given) {
  require(given != nullptr, "the scan is missing.");
  const GatedrnnScan& scan = *given;
  check_kind(scan.dtype, scan.cell, scan.gate);
  require(scan.steps > 0 && scan.batch > 0 && scan.hidden > 0 && scan.recurrent > 0 && scan.inputs >= 0, "sizes must be positive.");
  const CellLayout layout = layout_of(scan.cell, scan.gate);
  const int64_t bytes = scan.dtype == GATEDRNN_FLOAT32 ? 4 : 8, most = std::max({scan.hidden, scan.recurrent, scan.inputs});
  constexpr int64_t padded = 64;  // more than the padding of the smallest size to whole panels
  product_of_sizes({scan.steps, scan.batch, most, bytes, most_blocks + 1, padded});
  product_of_sizes({most, most, bytes, most_blocks, padded});
  require(scan.threads > 0, "the number of threads must be positive.");
  require(scan.segment >= 0, "the segment must not be negative.");
  require(scan.coefficient_count >= 0 && (scan.coefficient_count == 0 || scan.coefficients), "the coefficients are missing.");
  require(scan.cell != GATEDRNN_JANET || (scan.odds > 0 && std::isfinite(scan.odds)), "the odds of JANET must be positive and finite.");
  const bool projected = scan.weights[GATEDRNN_WEIGHT_HR] != nullptr;
  require(scan.input || scan.inputs == 0, "the input is missing.");
  require(scan.state[0] && (scan.state[1] || !layout.memory), "an initial state is missing.");
  require(scan.output, "the output is missing.");
  require_weights(scan, layout, scan.weights, "a weight is missing.");
  if (scan.cell == GATEDRNN_NRU) {
    check_heads(scan.hidden, scan.heads);
    require(!projected, "the NRU has no projection.");
    require(scan.gate == GATEDRNN_SIGMOID, "the NRU has no gate: give the first one.");
  } else {
    require(projected || scan.recurrent == scan.hidden, "weight_hr is missing.");
    require(!layout.copied || scan.inputs == scan.hidden, "the input of the MinimalRNN's kernel must have as many features as its state.");
  }
  require(layout.memory || (!projected && !scan.cells && !scan.grad_cells), "only an LSTM has a projection and a memory.");
  if (scan.starts) check_packed(scan);
  if (scan.kept) {
    const int64_t row = kept_row(kernels, scan.dtype, scan.cell, scan.gate, scan.hidden, scan.heads, scan.segment > 0);
    const int64_t steps = scan.segment ? (scan.steps - 1) / scan.segment + 1 : scan.steps;
    require(scan.kept_size >= product_of_sizes({steps, scan.batch, row}), "`kept` is too small.");
  }
}

template <size_t count> std::vector<Phase> phases_of(void (*const (&functions)[count])(const Call&, int64_t), const Call& call) {
  std::vector<Phase> phases;
  for (const auto function : functions) phases.push_back([function, &call](int64_t thread) { function(call, thread); });
  return phases;
}

template <class Body> int guarded(const Body& body) {
  try {
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    error_text = "out of memory in the CPU engine.";
  } catch (const std::exception& error) {
    error_text = error.what();
  }
  return 1;
}

}  // namespace
}  // namespace gatedrnn

using namespace gatedrnn;

extern "C" {

int gatedrnn_forward(const GatedrnnScan* scan) {
  return guarded([&] {
    const Kernels& kernels = current();
    check_scan(kernels, scan);
    const bool memory = layout_of(scan->cell, scan->gate).memory;
    require(scan->final_state[0] && (scan->final_state[1] || !memory), "an array for the final state is missing.");
    const size_t element = scan->dtype == GATEDRNN_FLOAT32 ? 4 : 8, rows = size_t(scan->steps) * size_t(scan->batch) * element;
    advise_huge_pages(scan->output, rows * size_t(scan->recurrent));
    OwnedPlan owned(*scan, kernels.panel_width(scan->dtype), false);
    Call call{scan, &owned.plan, nullptr};
    Buffer space(size_t(owned.plan.one_step ? kernels.step_bytes(call, false) : kernels.forward_bytes(call)));
    call.space = space.data();
    if (owned.plan.one_step) return run_phases(owned.plan.threads, phases_of(kernels.step_forward, call));
    run_phases(owned.plan.threads, {[&](int64_t thread) { kernels.pack_forward(call, thread); },
                                    [&](int64_t thread) { kernels.forward(call, thread); }});
  });
}

int gatedrnn_backward(const GatedrnnScan* scan) {
  return guarded([&] {
    const Kernels& kernels = current();
    check_scan(kernels, scan);
    const CellLayout layout = layout_of(scan->cell, scan->gate);
    require(scan->kept || (scan->segment && !layout.memory), "the forward kept nothing for the backward.");
    const char* const missing = "an array for a gradient is missing.";
    require(scan->grad_state[0] && (scan->grad_state[1] || !layout.memory), missing);
    require_weights(*scan, layout, scan->grad_weights, missing);
    require(!scan->weights[GATEDRNN_WEIGHT_HR] || scan->grad_weights[GATEDRNN_WEIGHT_HR], missing);
    OwnedPlan owned(*scan, kernels.panel_width(scan->dtype), true);
    Call call{scan, &owned.plan, nullptr};
    Buffer space(size_t(owned.plan.one_step ? kernels.step_bytes(call, true) : kernels.backward_bytes(call)));
    call.space = space.data();
    if (owned.plan.one_step) return run_phases(owned.plan.threads, phases_of(kernels.step_backward, call));
    run_phases(owned.plan.threads, {[&](int64_t thread) { kernels.pack_backward(call, thread); },
                                    [&](int64_t thread) { kernels.backward(call, thread); },
                                    [&](int64_t thread) { kernels.reduce(call, thread); }});
  });
}

int gatedrnn_gate(int64_t dtype, int64_t gate, int64_t coefficient_count, const double* coefficients, const char* program,
                  int64_t n, const void* z, const void* aux, void* value, void* complement, void* slope, void* slope_aux) {
  return guarded([&] {
    const Kernels& kernels = current();
    check_kind(dtype, GATEDRNN_LSTM, gate);
    require(coefficient_count >= 0 && coefficient_count <= 64, "at most 64 coefficients.");
    require(coefficient_count == 0 || coefficients, "the coefficients are missing.");
    require(n >= 0 && (n == 0 || (z && value && complement && slope)), "an array of the gate is missing.");
    require(!has_aux(gate) || (aux && slope_aux), "the gate takes two pre-activations.");
    std::optional<ParsedProgram> parsed;
    if (gate == GATEDRNN_PROGRAM) parsed.emplace(program, true);
    const GateProgram* given = parsed ? &parsed->program : nullptr;
    run_phases(1, {[&](int64_t) {
                 kernels.gate(dtype, gate, coefficient_count, coefficients, n, z, aux, value, complement, slope, slope_aux, given);
               }});
  });
}

int gatedrnn_program(int64_t dtype, const char* program, int64_t n, const void* z, void* alpha, void* slope) {
  return guarded([&] {
    const Kernels& kernels = current();
    check_kind(dtype, GATEDRNN_LSTM, GATEDRNN_PROGRAM);
    require(n >= 0 && (n == 0 || (z && alpha && slope)), "an array of the gate is missing.");
    const ParsedProgram parsed(program, true);
    run_phases(1, {[&](int64_t) { kernels.program(dtype, parsed.program, n, z, alpha, slope); }});
  });
}

const char* gatedrnn_error(void) { return error_text.c_str(); }

const char* gatedrnn_isa(void) {
  const char* name = nullptr;
  guarded([&] { name = current().name; });
  return name;
}

int gatedrnn_select_isa(const char* name) {
  return guarded([&] { selected.store(name && *name ? choose(name) : choose_from_environment()); });
}

int64_t gatedrnn_panel_width(int64_t dtype) {
  int64_t width = 0;
  guarded([&] {
    check_kind(dtype, GATEDRNN_LSTM, GATEDRNN_SIGMOID);
    width = current().panel_width(dtype);
  });
  return width;
}

int64_t gatedrnn_kept_row(int64_t dtype, int64_t cell, int64_t gate, int64_t hidden, int64_t heads, int64_t recompute) {
  int64_t row = -1;
  guarded([&] {
    check_kind(dtype, cell, gate);
    require(hidden > 0, "sizes must be positive.");
    if (cell == GATEDRNN_NRU) check_heads(hidden, heads);
    row = kept_row(current(), dtype, cell, gate, hidden, heads, recompute != 0);
  });
  return row;
}

void gatedrnn_borrow_threads(void* parallel, void* thread, void* threads) {
  borrow_threads({reinterpret_cast<decltype(Lender::parallel)>(parallel), reinterpret_cast<decltype(Lender::thread)>(thread),
                  reinterpret_cast<decltype(Lender::threads)>(threads)});
}

void* gatedrnn_take(int64_t bytes) { return bytes < 0 ? nullptr : take_buffer(size_t(bytes)); }

void gatedrnn_give(void* buffer) { give_back(buffer); }

int64_t gatedrnn_release(void) { return int64_t(release_idle()); }

int64_t gatedrnn_abi(void) { return GATEDRNN_ABI; }

int64_t gatedrnn_scan_size(void) { return int64_t(sizeof(GatedrnnScan)); }

const char* gatedrnn_facts(void) {
  static const std::string text = [] {
    std::string lines = "dtypes";
#define GATEDRNN_WORD(NAME, text, ...) lines += " " text;
    GATEDRNN_DTYPES(GATEDRNN_WORD)
    lines += "\nweights";
    GATEDRNN_WEIGHTS(GATEDRNN_WORD)
    lines += "\noperations";
    GATEDRNN_OPERATIONS(GATEDRNN_WORD)
#undef GATEDRNN_WORD
    for (const GateFacts& gate : gate_facts) lines += "\ngate " + std::string(gate.name) + " " + std::to_string(gate.preactivations);
    for (const CellFacts& cell : cell_facts)
      lines += "\ncell " + std::string(cell.name) + " " + cell.rows + " " + std::to_string(cell.states) + " " +
               std::to_string(cell.blocks.size());
    return lines;
  }();
  return text.c_str();
}

}  // extern "C"
