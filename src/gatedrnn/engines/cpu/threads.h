// Threads of one call. They are started for the call and joined at its end: a call runs for milliseconds, a
// start costs microseconds, and nothing is left behind that a fork could break.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace gatedrnn {

using Phase = std::function<void(int64_t thread)>;

// Runs every phase on every thread, the caller being thread 0, with a barrier after each phase.
// Denormal numbers are flushed inside, and the mode of the caller is restored.
void run_phases(int64_t threads, const std::vector<Phase>& phases);

}  // namespace gatedrnn
