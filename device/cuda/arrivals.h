// SPDX-License-Identifier: Apache-2.0
//
// mbarriers of PTX. One counts arrivals in a block's shared memory: threads, bytes copied from
// global memory, or numbers sent by another block of the cluster. A thread that waits on it needs
// no barrier of the block or cluster, whose fence would wait for all pending memory accesses. Needs
// compute capability 9.0.
#pragma once

#include <cstdint>

namespace plumb::device::PLUMB_KERNEL_SET {

// Lies in shared memory, at the same offset in each block of a cluster. A phase ends when the
// declared number of threads and all expected bytes have arrived.
struct Arrivals {
  std::uint64_t state;
};

static __device__ inline unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// Called by one thread. Other threads may use `arrivals` after a barrier of the block, other blocks
// after a barrier of the cluster. `threads`: arrivals that end a phase.
static __device__ inline void start(Arrivals& arrivals, int threads) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;\n"
      "fence.mbarrier_init.release.cluster;" ::"r"(shared_address(&arrivals)),
      "r"(threads)
      : "memory");
}

// One thread arrives. Its reads and writes before this call precede those of threads that wait.
static __device__ inline void arrive(Arrivals& arrivals) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&arrivals))
               : "memory");
}

// One thread arrives, and adds `bytes` to the bytes that this phase waits for. The bytes may arrive
// before this call.
static __device__ inline void expect(Arrivals& arrivals, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&arrivals)),
      "r"(bytes)
      : "memory");
}

// Waits for the end of a phase. The first phase is even, the second odd, and so on.
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

// Starts a copy from global to shared memory. Addresses and `bytes` are multiples of 16.
static __device__ inline void copy_bytes(const void* from, void* to, int bytes,
                                         Arrivals& arrivals) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&arrivals))
      : "memory");
}

// Sends a number to block `rank` of the cluster. `to` and `arrivals` are addresses in this block;
// the number arrives at the same offsets in the other block.
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

// For `count` buffers used in turn: the buffer of a turn, and whether its phase in this turn is
// odd.
template <int count>
static __device__ inline int place_of(int turn) {
  return turn % count;
}
template <int count>
static __device__ inline bool is_odd_phase(int turn) {
  return turn / count % 2 != 0;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
