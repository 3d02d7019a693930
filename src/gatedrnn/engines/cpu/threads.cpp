#include "threads.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gatedrnn {
namespace {

class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : mode_(_mm_getcsr()) { _mm_setcsr(mode_ | 0x8040); }  // flush to zero, denormals are zero
  ~FlushDenormals() { _mm_setcsr(mode_); }

 private:
  unsigned mode_;
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(mode_));
    asm volatile("msr fpcr, %0" ::"r"(mode_ | (uint64_t(1) << 24)));
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" ::"r"(mode_)); }

 private:
  uint64_t mode_;
#endif
};

void rest() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A thread that sleeps is often woken on the core of the one that wakes it, and there it waits until the system moves
// it: milliseconds. What takes less than about one is waited for awake.
constexpr int64_t patience = 20000;

template <class Condition> bool soon(const Condition& condition) {
  for (int64_t spins = 0; spins < patience; ++spins) {
    if (condition()) return true;
    rest();
  }
  return false;
}

class Barrier {
 public:
  explicit Barrier(int64_t threads) : threads_(threads) {}
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int64_t round = round_.load();
    if (++waiting_ == threads_) {
      waiting_ = 0;
      round_.store(round + 1);
      all_here_.notify_all();
      return;
    }
    lock.unlock();
    if (soon([&] { return round_.load() != round; })) return;
    lock.lock();
    all_here_.wait(lock, [&] { return round_.load() != round; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  const int64_t threads_;
  int64_t waiting_ = 0;
  std::atomic<int64_t> round_{0};
};

}  // namespace

void Meeting::wait(int64_t members) {
  const int64_t ticket = arrived.fetch_add(1, std::memory_order_acq_rel);
  const int64_t complete = (ticket / members + 1) * members;
  auto all_here = [&] { return arrived.load(std::memory_order_acquire) >= complete; };
  if (soon(all_here)) return;
  while (!all_here()) std::this_thread::yield();  // the others are probably not running: let them
}

namespace {

Lender lender{};
std::atomic<bool> lent{false};

using Work = std::function<void(int64_t thread)>;

// Runs the work on borrowed threads. False, and nothing has been done, if there are none or too few: inside another
// parallel region, say.
bool on_borrowed_threads(int64_t threads, const Work& work) {
  if (!lent.load()) return false;
  struct Shared {
    const Work& work;
    int threads;
    std::atomic<bool> enough;
  } shared{work, int(threads), {true}};
  lender.parallel(
      [](void* data) {
        Shared& all = *static_cast<Shared*>(data);
        if (lender.threads() == all.threads)
          all.work(lender.thread());
        else
          all.enough.store(false);
      },
      &shared, unsigned(threads), 0);
  return shared.enough.load();
}

void on_own_threads(int64_t threads, const Work& work) {
  // A thread may fail to start. None does any work before all are there, so the call can still be given up.
  std::mutex mutex;
  std::condition_variable decided;
  std::atomic<int> decision{0};
  std::vector<std::thread> others;
  others.reserve(size_t(threads));
  auto decide = [&](int value) {
    std::lock_guard<std::mutex> lock(mutex);
    decision.store(value);
    decided.notify_all();
  };
  try {
    for (int64_t thread = 1; thread < threads; ++thread)
      others.emplace_back([&, thread] {
        if (!soon([&] { return decision.load() != 0; })) {
          std::unique_lock<std::mutex> lock(mutex);
          decided.wait(lock, [&] { return decision.load() != 0; });
        }
        if (decision.load() > 0) work(thread);
      });
  } catch (...) {
    decide(-1);
    for (std::thread& other : others) other.join();
    throw;
  }
  decide(1);
  work(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

void borrow_threads(const Lender& given) {
  static const bool once = [] {
    // The threads of a pool do not survive a fork, and the runtime in the child does not know it.
    pthread_atfork(nullptr, nullptr, [] { lent.store(false); });
    return true;
  }();
  (void)once;
  lender = given;
  lent.store(given.parallel && given.thread && given.threads);
}

void run_phases(int64_t threads, const std::vector<Phase>& phases) {
  Barrier barrier(threads);
  const Work work = [&](int64_t thread) {
    FlushDenormals flush;
    for (const Phase& phase : phases) {
      phase(thread);
      if (threads > 1) barrier.wait();
    }
  };
  if (threads == 1)
    work(0);
  else if (!on_borrowed_threads(threads, work))
    on_own_threads(threads, work);
}

}  // namespace gatedrnn
