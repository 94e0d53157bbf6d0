// SPDX-License-Identifier: Apache-2.0
//
// The part of device/simt.h that is the same for CUDA and HIP. Each simt_back_end.h includes it
// after the vendor's header, the PLUMB_ macros and kWaveSize. Blocks are one-dimensional, so that a
// thread's index gives its lane.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/gpu/launch.h"
#include "device/simt_vector.h"

#define PLUMB_NATIVE_FMA

#define PLUMB_LAUNCH(kernel, shape, stream, ...) \
  ::plumb::device::PLUMB_GPU::launch_kernel((kernel), (shape), (stream)__VA_OPT__(, ) __VA_ARGS__)

namespace plumb::device::PLUMB_KERNEL_SET {

using LaneMask = std::uint64_t;
using PLUMB_GPU::LaunchShape;
using PLUMB_GPU::stream_properties;

PLUMB_DEVICE inline int thread_index() { return static_cast<int>(threadIdx.x); }
PLUMB_DEVICE inline int wave_size() { return kWaveSize; }
PLUMB_DEVICE inline int lane_index() { return thread_index() % kWaveSize; }
PLUMB_DEVICE inline int wave_index() { return thread_index() / kWaveSize; }
PLUMB_DEVICE inline int block_size() { return static_cast<int>(blockDim.x); }
PLUMB_DEVICE inline int block_index_x() { return static_cast<int>(blockIdx.x); }
PLUMB_DEVICE inline int block_index_y() { return static_cast<int>(blockIdx.y); }
PLUMB_DEVICE inline int grid_size_x() { return static_cast<int>(gridDim.x); }
PLUMB_DEVICE inline int grid_size_y() { return static_cast<int>(gridDim.y); }

// The lanes that this wave has: fewer than kWaveSize in the last wave of a block that is no
// multiple.
PLUMB_DEVICE inline LaneMask all_lanes() {
  const int left = block_size() - wave_index() * kWaveSize;
  return ~LaneMask{0} >> (64 - (left < kWaveSize ? left : kWaveSize));
}

template <typename T>
PLUMB_DEVICE inline T atomic_add(T* address, std::type_identity_t<T> value) {
  return atomicAdd(address, value);
}
template <typename T>
PLUMB_DEVICE inline T atomic_max(T* address, std::type_identity_t<T> value) {
  return atomicMax(address, value);
}
template <typename T>
PLUMB_DEVICE inline T atomic_exchange(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, value);
}

PLUMB_DEVICE inline LaneMask whole_wave() { return ~LaneMask{0} >> (64 - kWaveSize); }

PLUMB_DEVICE inline bool starts_vector(const void* address, unsigned bytes = 16) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

// What one access of 8 or 16 bytes moves.
template <int bytes>
struct VectorBits {
  static_assert(bytes == 8 || bytes == 16);
  using Type = std::conditional_t<bytes == 16, uint4, uint2>;
};

template <int bytes = 16, typename T>
PLUMB_DEVICE inline Vector<T, bytes> load_vector(const T* from) {
  const auto bits = *reinterpret_cast<const typename VectorBits<bytes>::Type*>(from);
  Vector<T, bytes> vector;
  __builtin_memcpy(&vector, &bits, sizeof vector);
  return vector;
}

template <typename T, int bytes>
PLUMB_DEVICE inline void store_vector(T* to, const Vector<T, bytes>& vector) {
  typename VectorBits<bytes>::Type bits;
  __builtin_memcpy(&bits, &vector, sizeof bits);
  *reinterpret_cast<typename VectorBits<bytes>::Type*>(to) = bits;
}

PLUMB_DEVICE inline int bit_count(std::uint64_t bits) { return __popcll(bits); }
PLUMB_DEVICE inline float exp2_approx(float x) { return exp2f(x); }
PLUMB_DEVICE inline float log2_approx(float x) { return log2f(x); }
PLUMB_DEVICE inline float rsqrt_approx(float x) { return rsqrtf(x); }
PLUMB_DEVICE inline float native_fma(float a, float b, float c) { return fmaf(a, b, c); }
PLUMB_DEVICE inline std::uint32_t float_bits(float x) { return __float_as_uint(x); }
PLUMB_DEVICE inline float bits_float(std::uint32_t u) { return __uint_as_float(u); }

}  // namespace plumb::device::PLUMB_KERNEL_SET
