// Scans from several threads at once, each of which the library cuts up among threads of its own, and buffers taken and
// given back by all of them: for ThreadSanitizer, which knows nothing of torch's OpenMP. The numbers are compared with
// those of one thread. `make sanitize` builds and runs it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "abi.h"

namespace {

using Numbers = std::vector<float>;

Numbers drawn(int64_t count, unsigned seed) {
  Numbers numbers(static_cast<size_t>(count));
  for (float& x : numbers) {
    seed = seed * 1664525u + 1013904223u;
    x = float(seed >> 8) / float(1 << 24) - 0.5f;
  }
  return numbers;
}

// Forward and backward of an LSTM; all results, one after the other.
Numbers scan(int64_t steps, int64_t batch, int64_t hidden, int64_t threads, int64_t segment) {
  constexpr int64_t inputs = 40;
  const int64_t rows = 4 * hidden, state = batch * hidden;
  Numbers input = drawn(steps * batch * inputs, 1), h = drawn(state, 2), c = drawn(state, 3);
  Numbers w_ih = drawn(rows * inputs, 4), w_hh = drawn(rows * hidden, 5), b_ih = drawn(rows, 6), b_hh = drawn(rows, 7);
  for (float& w : w_hh) w /= std::sqrt(float(hidden));
  Numbers output(size_t(steps * state)), h_n(h.size()), c_n(c.size()), d_output = drawn(steps * state, 8);
  Numbers d_input(input.size()), d_h(h.size()), d_c(c.size()), d_ih(w_ih.size()), d_hh(w_hh.size()), d_b(b_ih.size()), d_b_hh(b_hh.size());
  GatedrnnScan s{};
  s.dtype = GATEDRNN_FLOAT32, s.cell = GATEDRNN_LSTM, s.gate = GATEDRNN_FAST;
  s.steps = steps, s.batch = batch, s.inputs = inputs, s.hidden = s.recurrent = hidden;
  s.threads = threads, s.segment = segment, s.odds = 1;
  const int64_t row = gatedrnn_kept_row(s.dtype, s.cell, s.gate, hidden, 0, segment > 0);
  s.kept_size = row * batch * (segment ? (steps - 1) / segment + 1 : steps);
  s.kept = gatedrnn_take(s.kept_size * int64_t(sizeof(float)));
  s.input_strides[0] = batch * inputs, s.input_strides[1] = inputs, s.input_strides[2] = 1;
  s.grad_output_strides[0] = state, s.grad_output_strides[1] = hidden;
  s.input = input.data(), s.state[0] = h.data(), s.state[1] = c.data();
  s.weights[GATEDRNN_WEIGHT_IH] = w_ih.data(), s.weights[GATEDRNN_WEIGHT_HH] = w_hh.data();
  s.weights[GATEDRNN_BIAS_IH] = b_ih.data(), s.weights[GATEDRNN_BIAS_HH] = b_hh.data();
  s.output = output.data(), s.final_state[0] = h_n.data(), s.final_state[1] = c_n.data();
  s.grad_output = d_output.data(), s.grad_input = d_input.data(), s.grad_state[0] = d_h.data(), s.grad_state[1] = d_c.data();
  s.grad_weights[GATEDRNN_WEIGHT_IH] = d_ih.data(), s.grad_weights[GATEDRNN_WEIGHT_HH] = d_hh.data();
  s.grad_weights[GATEDRNN_BIAS_IH] = d_b.data(), s.grad_weights[GATEDRNN_BIAS_HH] = d_b_hh.data();
  if (!s.kept || gatedrnn_forward(&s) || gatedrnn_backward(&s)) {
    std::fprintf(stderr, "%s\n", gatedrnn_error());
    std::exit(1);
  }
  gatedrnn_give(s.kept);
  for (const Numbers* more : {&h_n, &c_n, &d_input, &d_h, &d_c, &d_ih, &d_hh, &d_b, &d_b_hh})
    output.insert(output.end(), more->begin(), more->end());
  return output;
}

// The largest difference between one thread and several, from several callers at once.
float difference(int64_t steps, int64_t batch, int64_t hidden, int64_t segment) {
  const Numbers expected = scan(steps, batch, hidden, 1, segment);
  constexpr int callers = 3;
  std::vector<Numbers> found(callers);
  std::vector<std::thread> all;
  for (int i = 0; i < callers; ++i)
    all.emplace_back([&, i] {
      found[size_t(i)] = scan(steps, batch, hidden, 2 + i, segment);
      if (i == 1) gatedrnn_release();
    });
  for (std::thread& one : all) one.join();
  float worst = 0;
  for (const Numbers& some : found)
    for (size_t i = 0; i < expected.size(); ++i) worst = std::fmax(worst, std::fabs(some[i] - expected[i]));
  return worst;
}

}  // namespace

int main() {
  // Slices of a batch, one row whose units a team shares, recomputation, and one step alone. Large enough for the pool.
  const struct {
    int64_t steps, batch, hidden, segment;
  } cases[] = {{12, 9, 96, 0}, {40, 1, 200, 0}, {24, 6, 96, 8}, {1, 5, 260, 0}, {1, 40, 260, 0}, {60, 64, 128, 0}};
  for (const auto& some : cases) {
    const float worst = difference(some.steps, some.batch, some.hidden, some.segment);
    std::printf("%lldx%lldx%lld: %g\n", (long long)some.steps, (long long)some.batch, (long long)some.hidden, double(worst));
    if (!(worst < 1e-3f)) return 1;  // sums of thousands of terms in another order
  }
  return 0;
}
