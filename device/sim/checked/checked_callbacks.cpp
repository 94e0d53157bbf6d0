// SPDX-License-Identifier: Apache-2.0
//
// The functions that code compiled with -fsanitize=thread calls, under the names of g++ and clang.
// The checked kernels use them: the sanitizer's own runtime is not linked. Outside a checked launch
// they return at once.
#include <cstdint>
#include <cstring>

#include "device/sim/checked/checked.h"

namespace {

using plumb::device::sim::note_atomic;

void report(const void* address, std::size_t bytes, bool write) {
  using namespace plumb::device::sim;
  if (current == nullptr || checker == nullptr) return;
  checker->access({reinterpret_cast<std::uintptr_t>(address), bytes, write});
}

}  // namespace

#define PLUMB_PLAIN_CALLBACKS(bytes)                                                          \
  void __tsan_read##bytes(const void* p) { report(p, bytes, false); }                         \
  void __tsan_write##bytes(void* p) { report(p, bytes, true); }                               \
  void __tsan_unaligned_read##bytes(const void* p) { report(p, bytes, false); }               \
  void __tsan_unaligned_write##bytes(void* p) { report(p, bytes, true); }                     \
  void __tsan_volatile_read##bytes(const void* p) { report(p, bytes, false); }                \
  void __tsan_volatile_write##bytes(void* p) { report(p, bytes, true); }                      \
  void __tsan_unaligned_volatile_read##bytes(const void* p) { report(p, bytes, false); }      \
  void __tsan_unaligned_volatile_write##bytes(void* p) { report(p, bytes, true); }            \
  void __tsan_read_write##bytes(void* p) { report(p, bytes, false), report(p, bytes, true); } \
  void __tsan_unaligned_read_write##bytes(void* p) {                                          \
    report(p, bytes, false), report(p, bytes, true);                                          \
  }

#define PLUMB_ATOMIC_UPDATE(bits, name, builtin)                                                  \
  std::uint##bits##_t __tsan_atomic##bits##_##name(std::uint##bits##_t* p, std::uint##bits##_t v, \
                                                   int) {                                         \
    note_atomic(p, bits / 8, true);                                                               \
    return builtin(p, v, __ATOMIC_SEQ_CST);                                                       \
  }

#define PLUMB_ATOMIC_CALLBACKS(bits)                                                               \
  std::uint##bits##_t __tsan_atomic##bits##_load(const std::uint##bits##_t* p, int) {              \
    report(p, bits / 8, false);                                                                    \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(std::uint##bits##_t* p, std::uint##bits##_t v, int) {           \
    note_atomic(p, bits / 8, false);                                                               \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  PLUMB_ATOMIC_UPDATE(bits, exchange, __atomic_exchange_n)                                         \
  PLUMB_ATOMIC_UPDATE(bits, fetch_add, __atomic_fetch_add)                                         \
  PLUMB_ATOMIC_UPDATE(bits, fetch_sub, __atomic_fetch_sub)                                         \
  PLUMB_ATOMIC_UPDATE(bits, fetch_and, __atomic_fetch_and)                                         \
  PLUMB_ATOMIC_UPDATE(bits, fetch_or, __atomic_fetch_or)                                           \
  PLUMB_ATOMIC_UPDATE(bits, fetch_xor, __atomic_fetch_xor)                                         \
  PLUMB_ATOMIC_UPDATE(bits, fetch_nand, __atomic_fetch_nand)                                       \
  int __tsan_atomic##bits##_compare_exchange_strong(                                               \
      std::uint##bits##_t* p, std::uint##bits##_t* expected, std::uint##bits##_t v, int, int) {    \
    note_atomic(p, bits / 8, true);                                                                \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(                                                 \
      std::uint##bits##_t* p, std::uint##bits##_t* expected, std::uint##bits##_t v, int, int) {    \
    note_atomic(p, bits / 8, true);                                                                \
    return __atomic_compare_exchange_n(p, expected, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }                                                                                                \
  std::uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                  \
      std::uint##bits##_t* p, std::uint##bits##_t expected, std::uint##bits##_t v, int, int) {     \
    note_atomic(p, bits / 8, true);                                                                \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    return expected;                                                                               \
  }

extern "C" {

PLUMB_PLAIN_CALLBACKS(1)
PLUMB_PLAIN_CALLBACKS(2)
PLUMB_PLAIN_CALLBACKS(4)
PLUMB_PLAIN_CALLBACKS(8)
PLUMB_PLAIN_CALLBACKS(16)
PLUMB_ATOMIC_CALLBACKS(8)
PLUMB_ATOMIC_CALLBACKS(16)
PLUMB_ATOMIC_CALLBACKS(32)
PLUMB_ATOMIC_CALLBACKS(64)

void __tsan_read_range(const void* p, std::size_t bytes) { report(p, bytes, false); }
void __tsan_write_range(void* p, std::size_t bytes) { report(p, bytes, true); }
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}
void __tsan_vptr_read(void** p) { report(p, sizeof(void*), false); }
void __tsan_vptr_update(void** p, void*) { report(p, sizeof(void*), true); }

void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) report(from, bytes, false), report(to, bytes, true);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) report(from, bytes, false), report(to, bytes, true);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  if (bytes > 0) report(to, bytes, true);
  return std::memset(to, value, bytes);
}

}  // extern "C"
