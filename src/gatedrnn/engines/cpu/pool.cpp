#include "pool.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace gatedrnn {
namespace {

constexpr size_t huge_page = size_t(2) << 20;
// Smaller buffers are left to the allocator, which keeps them; larger ones it may request from the system each time.
constexpr size_t least_pooled = size_t(1) << 18;
// The largest total of idle buffers. Beyond it a buffer is returned to the system at once.
constexpr size_t most_idle = size_t(1) << 30;
// This much may be idle regardless of the peak: small layers would exchange buffers of different sizes at every call.
constexpr size_t always_idle = size_t(32) << 20;

struct Block {
  void* memory;
  size_t bytes;
};

// Never destroyed: tensors may give buffers back while the program ends.
struct Pool {
  std::mutex mutex;
  std::vector<Block> idle;  // sorted by size
  std::unordered_map<void*, size_t> lent;
  size_t idle_bytes = 0, lent_bytes = 0, most_lent = 0;
};
Pool& pool() {
  static Pool* const only = [] {
    Pool* const made = new Pool;
    // A child must not find the mutex held by a thread that it does not have.
    pthread_atfork([] { pool().mutex.lock(); }, [] { pool().mutex.unlock(); }, [] { pool().mutex.unlock(); });
    return made;
  }();
  return *only;
}

void* allocate(size_t bytes) {
  const bool large = bytes >= 2 * huge_page;
  void* memory = nullptr;
  if (posix_memalign(&memory, large ? huge_page : 64, bytes) != 0) return nullptr;
  advise_huge_pages(memory, bytes);
  return memory;
}

void free_idle(Pool& all, size_t index) {
  std::free(all.idle[index].memory);
  all.idle_bytes -= all.idle[index].bytes;
  all.idle.erase(all.idle.begin() + std::ptrdiff_t(index));
}

// The smallest idle buffer that is large enough and not much too large; null if there is none.
void* reuse(Pool& all, size_t bytes) {
  for (size_t i = 0; i < all.idle.size(); ++i) {
    const Block found = all.idle[i];
    if (found.bytes < bytes) continue;
    if (found.bytes > 2 * bytes) return nullptr;
    all.idle.erase(all.idle.begin() + std::ptrdiff_t(i));
    all.idle_bytes -= found.bytes;
    all.lent.emplace(found.memory, found.bytes);
    all.lent_bytes += found.bytes;
    return found.memory;
  }
  return nullptr;
}

}  // namespace

void advise_huge_pages(void* memory, size_t bytes) {
#if defined(__linux__)
  if (!memory || bytes < 2 * huge_page) return;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + huge_page - 1) / huge_page * huge_page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / huge_page * huge_page;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

void* take_buffer(size_t bytes) {
  if (bytes < least_pooled) return allocate(bytes);
  Pool& all = pool();
  const std::lock_guard<std::mutex> lock(all.mutex);
  void* memory = reuse(all, bytes);
  if (!memory) {
    // Idle buffers must not raise the peak much: with a new buffer, the total may reach the largest amount in use before.
    while (all.idle_bytes > always_idle && all.lent_bytes + all.idle_bytes + bytes > all.most_lent) free_idle(all, 0);
    memory = allocate(bytes);
    if (!memory) return nullptr;
    all.lent.emplace(memory, bytes);
    all.lent_bytes += bytes;
  }
  all.most_lent = std::max(all.most_lent, all.lent_bytes);
  return memory;
}

void give_back(void* buffer) {
  if (!buffer) return;
  Pool& all = pool();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto lent = all.lent.find(buffer);
  if (lent == all.lent.end()) {  // too small for the pool
    std::free(buffer);
    return;
  }
  const Block block{buffer, lent->second};
  all.lent.erase(lent);
  all.lent_bytes -= block.bytes;
  if (all.idle_bytes + block.bytes > most_idle) {
    std::free(buffer);
    return;
  }
  const auto place = std::lower_bound(all.idle.begin(), all.idle.end(), block,
                                      [](const Block& a, const Block& b) { return a.bytes < b.bytes; });
  all.idle.insert(place, block);
  all.idle_bytes += block.bytes;
}

size_t release_idle() {
  Pool& all = pool();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const size_t released = all.idle_bytes;
  while (!all.idle.empty()) free_idle(all, all.idle.size() - 1);
  all.most_lent = all.lent_bytes;
  return released;
}

Buffer::Buffer(size_t bytes) : memory_(take_buffer(bytes)) {
  if (!memory_)
    throw std::runtime_error("out of memory: the CPU engine could not allocate a workspace of " + std::to_string(bytes) + " bytes.");
#if defined(GATEDRNN_POISON)  // every byte 0xff is a NaN: a value read before it is written shows
  std::memset(memory_, 0xff, bytes);
#endif
}

}  // namespace gatedrnn
