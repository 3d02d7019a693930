// Threads of one call. They are started for the call and joined at its end: a call runs for milliseconds, a
// start costs microseconds, and nothing is left behind that a fork could break.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace gatedrnn {

using Phase = std::function<void(int64_t thread)>;

// Where the members of a team wait for each other: once in every time step, so they spin and do not sleep.
struct alignas(64) Meeting {
  std::atomic<int64_t> arrived{0};
  void wait(int64_t members);
};

// Runs every phase on every thread, the caller being thread 0, with a barrier after each phase.
// Denormal numbers are flushed inside, and the mode of the caller is restored.
void run_phases(int64_t threads, const std::vector<Phase>& phases);

}  // namespace gatedrnn
