// SPDX-License-Identifier: Apache-2.0
//
// The HIP back end of device/simt.h, for processors with waves of 64 lanes (gfx9). exp2f, log2f and
// rsqrtf are within 1 ulp (ROCm's table of math functions). Subnormals are kept.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <type_traits>

#ifndef PLUMB_KERNEL_SET
#define PLUMB_KERNEL_SET hip_kernels
#endif

#define PLUMB_KERNEL __global__
#define PLUMB_DEVICE static __device__
#define PLUMB_METHOD __device__
#define PLUMB_UNROLL _Pragma("unroll")
#define PLUMB_NO_UNROLL _Pragma("unroll 1")
// clang takes a number of waves here, not of blocks, so `blocks` is left to the compiler.
#define PLUMB_BOUNDS(threads, blocks) __launch_bounds__(threads)
#define PLUMB_SHARED(type, name, count) __shared__ type name[count]

#if defined(__HIP_DEVICE_COMPILE__) && !defined(__GFX9__)
#error "device/hip is written for waves of 64 lanes, which gfx9 has"
#endif

namespace plumb::device::PLUMB_KERNEL_SET {
inline constexpr int kWaveSize = 64;
}

#include "device/gpu/simt_common.h"

namespace plumb::device::PLUMB_KERNEL_SET {

static __device__ inline void block_sync() { __syncthreads(); }

// Lanes of a wave share one program counter, so all named lanes are here. Memory instructions of a
// wave take effect in order (LLVM's AMDGPU memory model). Only the compiler could move an access
// across this point. The fences forbid that and cost no instruction.
static __device__ inline void wave_sync(LaneMask) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

static __device__ inline LaneMask ballot(LaneMask mask, bool predicate) {
  return __ballot(predicate) & mask;
}

// The `value` that lane `source` of the wave has. All shuffles use this, because releases of ROCm
// differ in what __shfl does with lanes beyond `width`.
template <typename T>
static __device__ inline T of_lane(T value, int source) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  int words[sizeof(T) / 4];
  __builtin_memcpy(words, &value, sizeof value);
  for (int& word : words) word = __builtin_amdgcn_ds_bpermute(source * 4, word);
  __builtin_memcpy(&value, words, sizeof value);
  return value;
}

template <typename T>
static __device__ inline T shuffle(LaneMask, T value, int lane, int width = kWaveSize) {
  return of_lane(value, (lane_index() & ~(width - 1)) + (lane & (width - 1)));
}

// A source outside the group of `width` lanes yields the lane's own value, also in shuffle_xor.
template <typename T>
static __device__ inline T shuffle_down(LaneMask, T value, int delta, int width = kWaveSize) {
  const int self = lane_index();
  return of_lane(value, (self & (width - 1)) + delta < width ? self + delta : self);
}

template <typename T>
static __device__ inline T shuffle_xor(LaneMask, T value, int lane_mask, int width = kWaveSize) {
  const int self = lane_index(), source = self ^ lane_mask;
  return of_lane(value, source < (self & ~(width - 1)) + width ? source : self);
}

template <typename T>
static __device__ inline Vector<T> reloaded(Vector<T> vector) {
  std::uint32_t words[4];
  __builtin_memcpy(words, &vector, sizeof vector);
  asm volatile("" : "+v"(words[0]), "+v"(words[1]), "+v"(words[2]), "+v"(words[3]));
  __builtin_memcpy(&vector, words, sizeof vector);
  return vector;
}

template <typename T>
static __device__ inline T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char plumb_dynamic_shared[];
  return reinterpret_cast<T*>(plumb_dynamic_shared);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
