// SPDX-License-Identifier: Apache-2.0
//
// mbarriers: what arrives in a block's shared memory is counted where it arrives, be it threads,
// bytes that are copied from global memory, or numbers that another block of the cluster sends.
// Whoever waits for them needs no barrier of the block or of the cluster, whose fence would wait
// for everything that is on its way. Needs compute capability 9.0.
#pragma once

#include <cstdint>

namespace plumb::device::PLUMB_KERNEL_SET {

// In shared memory, of each block at the same place. A phase ends when as many threads have arrived
// as were named and as many bytes as were expected.
struct Arrivals {
  std::uint64_t state;
};

static __device__ inline unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// By one thread; others may use it behind a barrier, other blocks behind one of the cluster.
static __device__ inline void start(Arrivals& arrivals, int threads) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;\n"
      "fence.mbarrier_init.release.cluster;" ::"r"(shared_address(&arrivals)),
      "r"(threads)
      : "memory");
}

// One thread arrives. What it has seen and done is before what those do who wait.
static __device__ inline void arrive(Arrivals& arrivals) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&arrivals))
               : "memory");
}

// One thread arrives and names bytes that the end of this phase is to wait for too. They may be
// there before it.
static __device__ inline void expect(Arrivals& arrivals, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&arrivals)),
      "r"(bytes)
      : "memory");
}

// Waits for the end of a phase; the first one and every other one after it are even.
static __device__ inline void wait_for(Arrivals& arrivals, bool odd_phase) {
  unsigned ended = 0;
  while (ended == 0) {
    asm volatile(
        "{ .reg .pred ended;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ended; }"
        : "=r"(ended)
        : "r"(shared_address(&arrivals)), "r"(static_cast<unsigned>(odd_phase))
        : "memory");
  }
}

// Starts to copy from global memory. 16 divides the addresses and the bytes.
static __device__ inline void copy_bytes(const void* from, void* to, int bytes,
                                         Arrivals& arrivals) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&arrivals))
      : "memory");
}

// Sends to block `rank` of the cluster: `to` and `arrivals` are this block's names of the places.
static __device__ inline void send(float number, float* to, Arrivals& arrivals, int rank) {
  asm volatile(
      "{ .reg .b32 to, arrivals;\n"
      "mapa.shared::cluster.u32 to, %0, %2;\n"
      "mapa.shared::cluster.u32 arrivals, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [to], %3, [arrivals]; }" ::
          "r"(shared_address(to)),
      "r"(shared_address(&arrivals)), "r"(rank), "f"(number)
      : "memory");
}

// Of places that are used in turn: which is a turn's, and whether its phase is an odd one.
template <int count>
static __device__ inline int place_of(int turn) {
  return turn % count;
}
template <int count>
static __device__ inline bool is_odd_phase(int turn) {
  return turn / count % 2 != 0;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
