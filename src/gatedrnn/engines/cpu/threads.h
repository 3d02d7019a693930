// Threads of one call. They are torch's own where it lends them: a pool of ours beside it would have to share the cores
// with torch's threads, which go on spinning for a while after every operator. Otherwise, in the child of a fork too,
// they are started for the call and joined at its end.
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

// The entry points of the OpenMP runtime that torch has loaded (libgomp's interface), or null.
struct Lender {
  void (*parallel)(void (*)(void*), void*, unsigned threads, unsigned flags);
  int (*thread)();
  int (*threads)();
};
void borrow_threads(const Lender& lender);

// Runs every phase on every thread, the caller being thread 0, with a barrier after each phase.
// Denormal numbers are flushed inside, and the mode of the caller is restored.
void run_phases(int64_t threads, const std::vector<Phase>& phases);

}  // namespace gatedrnn
