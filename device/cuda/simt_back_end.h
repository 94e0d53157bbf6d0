// SPDX-License-Identifier: Apache-2.0
//
// The CUDA back end of device/simt.h. Lane masks have 64 bits on all back ends. A wave here has 32
// lanes, so the upper half is zero. exp2f and rsqrtf are within 2 ulp, log2f within 1 ulp.
// Subnormals are kept.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#ifndef PLUMB_KERNEL_SET
#define PLUMB_KERNEL_SET cuda_kernels
#endif

#define PLUMB_KERNEL __global__
#define PLUMB_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define PLUMB_DEVICE static __device__
#define PLUMB_METHOD __device__
#define PLUMB_UNROLL _Pragma("unroll")
#define PLUMB_NO_UNROLL _Pragma("unroll 1")
#define PLUMB_SHARED(type, name, count) __shared__ type name[count]

namespace plumb::device::PLUMB_KERNEL_SET {
inline constexpr int kWaveSize = 32;
}

#include "device/gpu/simt_common.h"

namespace plumb::device::PLUMB_KERNEL_SET {

static __device__ inline void block_sync() { __syncthreads(); }
static __device__ inline void wave_sync(LaneMask mask) { __syncwarp(static_cast<unsigned>(mask)); }
static __device__ inline LaneMask ballot(LaneMask mask, bool predicate) {
  return __ballot_sync(static_cast<unsigned>(mask), predicate);
}

// Shuffles move a register as the unsigned integer of its size.
template <typename T>
using RegisterBits = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;

template <typename To, typename From>
static __device__ inline To reinterpret(const From& from) {
  static_assert(sizeof(To) == sizeof(From) && (sizeof(To) == 4 || sizeof(To) == 8));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <typename T>
static __device__ inline T shuffle(LaneMask mask, T value, int lane, int width = kWaveSize) {
  using Bits = RegisterBits<T>;
  return reinterpret<T>(
      __shfl_sync(static_cast<unsigned>(mask), reinterpret<Bits>(value), lane, width));
}

template <typename T>
static __device__ inline T shuffle_down(LaneMask mask, T value, int delta, int width = kWaveSize) {
  using Bits = RegisterBits<T>;
  return reinterpret<T>(__shfl_down_sync(static_cast<unsigned>(mask), reinterpret<Bits>(value),
                                         static_cast<unsigned>(delta), width));
}

template <typename T>
static __device__ inline T shuffle_xor(LaneMask mask, T value, int lane_mask,
                                       int width = kWaveSize) {
  using Bits = RegisterBits<T>;
  return reinterpret<T>(
      __shfl_xor_sync(static_cast<unsigned>(mask), reinterpret<Bits>(value), lane_mask, width));
}

template <typename T>
static __device__ inline T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char plumb_dynamic_shared[];
  return reinterpret_cast<T*>(plumb_dynamic_shared);
}

template <typename T>
static __device__ inline Vector<T> reloaded(const Vector<T>& vector) {
  uint4 bits;
  memcpy(&bits, &vector, sizeof bits);
  asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
  Vector<T> same;
  memcpy(&same, &bits, sizeof same);
  return same;
}

#define PLUMB_NATIVE_BF16
static __device__ inline std::uint32_t native_bf16_pair(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
static __device__ inline std::uint16_t native_bf16(float x) {
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
static __device__ inline std::uint32_t native_larger_bf16_sizes(std::uint32_t so_far,
                                                                std::uint32_t pair) {
  std::uint32_t larger;
  asm("{ .reg .b32 sizes; abs.bf16x2 sizes, %2; max.bf16x2 %0, %1, sizes; }"
      : "=r"(larger)
      : "r"(so_far), "r"(pair));
  return larger;
}
#if __CUDA_ARCH__ >= 890
#define PLUMB_NATIVE_E4M3FN
static __device__ inline std::uint16_t native_e4m3fn_pair(float low, float high) {
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

}  // namespace plumb::device::PLUMB_KERNEL_SET
