// SPDX-License-Identifier: Apache-2.0
//
// The CUDA half of device/simt.h. Masks have 64 bits everywhere; a wave here has 32 lanes, so their
// upper half is empty. exp2f and rsqrtf are within 2 ulp, log2f within 1, subnormals are kept.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "device/cuda/launch.h"
#include "device/simt_vector.h"

#ifndef PLUMB_KERNEL_SET
#define PLUMB_KERNEL_SET cuda_kernels
#endif

#define PLUMB_KERNEL __global__
#define PLUMB_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define PLUMB_DEVICE static __device__
#define PLUMB_METHOD __device__
#define PLUMB_UNROLL _Pragma("unroll")
#define PLUMB_SHARED(type, name, count) __shared__ type name[count]
#define PLUMB_LAUNCH(kernel, shape, stream, ...) \
  ::plumb::device::cuda::launch_kernel((kernel), (shape), (stream)__VA_OPT__(, ) __VA_ARGS__)

namespace plumb::device::PLUMB_KERNEL_SET {

using LaneMask = std::uint64_t;
using cuda::LaunchShape;
using cuda::stream_properties;

static __device__ inline int thread_index() { return static_cast<int>(threadIdx.x); }
static __device__ inline int wave_size() { return 32; }
static __device__ inline int lane_index() { return static_cast<int>(threadIdx.x % 32); }
static __device__ inline int wave_index() { return static_cast<int>(threadIdx.x / 32); }
static __device__ inline int block_size() { return static_cast<int>(blockDim.x); }
static __device__ inline int block_index_x() { return static_cast<int>(blockIdx.x); }
static __device__ inline int block_index_y() { return static_cast<int>(blockIdx.y); }
static __device__ inline int grid_size_x() { return static_cast<int>(gridDim.x); }
static __device__ inline int grid_size_y() { return static_cast<int>(gridDim.y); }

// The lanes that this wave has: fewer than 32 in a last, partial wave.
static __device__ inline LaneMask all_lanes() {
  const int left = block_size() - wave_index() * 32;
  return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}

static __device__ inline void block_sync() { __syncthreads(); }
static __device__ inline void wave_sync(LaneMask mask) { __syncwarp(static_cast<unsigned>(mask)); }
static __device__ inline LaneMask ballot(LaneMask mask, bool predicate) {
  return __ballot_sync(static_cast<unsigned>(mask), predicate);
}

// Registers travel as the unsigned integer of their size.
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
static __device__ inline T shuffle(LaneMask mask, T value, int lane, int width = 32) {
  using Bits = RegisterBits<T>;
  return reinterpret<T>(
      __shfl_sync(static_cast<unsigned>(mask), reinterpret<Bits>(value), lane, width));
}

template <typename T>
static __device__ inline T shuffle_down(LaneMask mask, T value, int delta, int width = 32) {
  using Bits = RegisterBits<T>;
  return reinterpret<T>(__shfl_down_sync(static_cast<unsigned>(mask), reinterpret<Bits>(value),
                                         static_cast<unsigned>(delta), width));
}

template <typename T>
static __device__ inline T shuffle_xor(LaneMask mask, T value, int lane_mask, int width = 32) {
  using Bits = RegisterBits<T>;
  return reinterpret<T>(
      __shfl_xor_sync(static_cast<unsigned>(mask), reinterpret<Bits>(value), lane_mask, width));
}

template <typename T>
static __device__ inline T atomic_add(T* address, std::type_identity_t<T> value) {
  return atomicAdd(address, value);
}
template <typename T>
static __device__ inline T atomic_max(T* address, std::type_identity_t<T> value) {
  return atomicMax(address, value);
}
template <typename T>
static __device__ inline T atomic_exchange(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, value);
}

template <typename T>
static __device__ inline T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char plumb_dynamic_shared[];
  return reinterpret_cast<T*>(plumb_dynamic_shared);
}

static __device__ inline bool starts_vector(const void* address, unsigned bytes = 16) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

template <typename T>
static __device__ inline Vector<T> load_vector(const T* from) {
  const uint4 bits = *reinterpret_cast<const uint4*>(from);
  Vector<T> vector;
  memcpy(&vector, &bits, sizeof vector);
  return vector;
}

template <typename T, int bytes>
static __device__ inline void store_vector(T* to, const Vector<T, bytes>& vector) {
  using Bits = std::conditional_t<bytes == 16, uint4, uint2>;
  static_assert(sizeof(Bits) == bytes, "8 or 16 bytes");
  Bits bits;
  memcpy(&bits, &vector, sizeof bits);
  *reinterpret_cast<Bits*>(to) = bits;
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

#define PLUMB_MATRIX_MIXING  // device/cuda/mhc_partials.cu

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
#if __CUDA_ARCH__ >= 890
#define PLUMB_NATIVE_E4M3FN
static __device__ inline std::uint16_t native_e4m3fn_pair(float low, float high) {
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

static __device__ inline int bit_count(std::uint64_t bits) { return __popcll(bits); }
static __device__ inline float exp2_approx(float x) { return exp2f(x); }
static __device__ inline float log2_approx(float x) { return log2f(x); }
static __device__ inline float rsqrt_approx(float x) { return rsqrtf(x); }
static __device__ inline std::uint32_t float_bits(float x) { return __float_as_uint(x); }
static __device__ inline float bits_float(std::uint32_t u) { return __uint_as_float(u); }

}  // namespace plumb::device::PLUMB_KERNEL_SET
