// Large buffers that are used again. A fresh buffer of hundreds of megabytes costs as much in page faults as the
// arithmetic done in it, and training asks for the same sizes at every update.
#pragma once
#include <cstddef>

namespace gatedrnn {

// At least `bytes`, aligned for vectors and large pages; null if there is no memory. Undefined content.
void* take_buffer(size_t bytes);
void give_back(void* buffer);
// Returns idle buffers to the system; the result is their number of bytes.
size_t release_idle();
void advise_huge_pages(void* memory, size_t bytes);

class Buffer {
 public:
  explicit Buffer(size_t bytes);
  ~Buffer() { give_back(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  char* data() const { return static_cast<char*>(memory_); }

 private:
  void* memory_;
};

}  // namespace gatedrnn
