// SPDX-License-Identifier: Apache-2.0
//
// Kernels that each keep one unit busy: memory, fp32 multiply-add, matrix unit. The compiler cannot
// drop the work: results are stored and depend on values that it does not know.
#include <cuda_runtime.h>

#include <algorithm>

#include "device/gpu/launch.h"

namespace plumb::device::cuda {

namespace {

constexpr int kCopyThreads = 512, kCopyVectors = 4;  // four loads in flight per thread
constexpr int kChains = 8, kSteps = 1 << 12;         // multiply-adds: independent chains
constexpr int kProducts = 1 << 12;  // products of 64 x 16 by 16 x 128, each by four warps

__global__ void copy_kernel(uint4* to, const uint4* from, std::int64_t vectors) {
  const std::int64_t first = std::int64_t{blockIdx.x} * (kCopyThreads * kCopyVectors) + threadIdx.x;
  uint4 held[kCopyVectors];
#pragma unroll
  for (int i = 0; i < kCopyVectors; ++i) {
    if (first + i * kCopyThreads < vectors) held[i] = from[first + i * kCopyThreads];
  }
#pragma unroll
  for (int i = 0; i < kCopyVectors; ++i) {
    if (first + i * kCopyThreads < vectors) to[first + i * kCopyThreads] = held[i];
  }
}

RateWork copy(void* to, const void* from, std::int64_t bytes, Stream stream) {
  constexpr std::int64_t kPerBlock = kCopyThreads * kCopyVectors;
  const std::int64_t vectors = bytes / 16;
  const LaunchShape shape{(vectors + kPerBlock - 1) / kPerBlock, 1, kCopyThreads, 0};
  return {launch_kernel(copy_kernel, shape, stream, static_cast<uint4*>(to),
                        static_cast<const uint4*>(from), vectors),
          2.0 * static_cast<double>(bytes)};
}

__global__ void multiply_add_kernel(float* out, float factor) {
  float sums[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) sums[i] = static_cast<float>(threadIdx.x + i);
#pragma unroll 16
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) sums[i] = fmaf(sums[i], factor, 1.0f);
  }
  float total = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) total += sums[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

RateWork multiply_add(float* out, Stream stream) {
  constexpr int kThreads = 256;
  const std::int64_t blocks = std::min<std::int64_t>(32 * stream_properties(stream).multiprocessors,
                                                     kRateThreads / kThreads);
  const LaunchShape shape{blocks, 1, kThreads, 0};
  return {launch_kernel(multiply_add_kernel, shape, stream, out, 0.999f),
          2.0 * static_cast<double>(blocks) * kThreads * kChains * kSteps};
}

// bf16 pairs of both signs with magnitudes between 1 and 2. With zeros, a matrix unit runs faster
// than with real data.
__device__ unsigned bf16_pair(unsigned seed) {
  unsigned bits = seed * 2654435761u + 12345u;
  bits ^= bits >> 15;
  bits *= 2246822519u;
  return (bits & 0x807f807fu) | 0x3f803f80u;
}

constexpr int kMatrixThreads = 256;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kSums = 64;  // per thread; four warps have 64 x 128 sums

// wgmma descriptor of rows of 64 bf16 numbers (128 bytes) in the swizzled layout, in which groups
// of eight rows are 1024 bytes apart.
__device__ unsigned long long descriptor(const void* shared) {
  const auto address = static_cast<unsigned long long>(__cvta_generic_to_shared(shared));
  return (address & 0x3ffffu) >> 4 | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

#define PLUMB_8_SUMS(i)                                                                      \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
      "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])

// sums += 64 x 16 by 16 x 128, both in shared memory. Four warps work together.
__device__ void multiply(float (&sums)[kSums], unsigned long long left, unsigned long long right) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, 1, 1, 1, 0, 0;"
      : PLUMB_8_SUMS(0), PLUMB_8_SUMS(8), PLUMB_8_SUMS(16), PLUMB_8_SUMS(24), PLUMB_8_SUMS(32),
        PLUMB_8_SUMS(40), PLUMB_8_SUMS(48), PLUMB_8_SUMS(56)
      : "l"(left), "l"(right));
}

#undef PLUMB_8_SUMS

// Two groups of four warps. Each product takes 16 of the 64 staged columns.
__device__ float matrix_products() {
  __shared__ __align__(1024) unsigned a[2][64 * 32], b[128 * 32];
  for (int i = threadIdx.x; i < 2 * 64 * 32; i += kMatrixThreads) a[0][i] = bf16_pair(i);
  for (int i = threadIdx.x; i < 128 * 32; i += kMatrixThreads) b[i] = bf16_pair(~i);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float sums[kSums] = {};
  const unsigned long long left = descriptor(a[threadIdx.x / 128]), right = descriptor(b);
  for (int product = 0; product < kProducts; product += 4) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int part = 0; part < 4; ++part) multiply(sums, left + 2 * part, right + 2 * part);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float total = 0;
#pragma unroll
  for (int i = 0; i < kSums; ++i) total += sums[i];
  return total;
}

#else

// Each warp multiplies 16 x 16 by 16 x 8 from registers, into four independent sums.
__device__ float matrix_products() {
  unsigned a[4], b[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = bf16_pair(threadIdx.x + 1024 * i);
#pragma unroll
  for (int i = 0; i < 2; ++i) b[i] = bf16_pair(~threadIdx.x - 1024 * i);
  float sums[4][4] = {};
  for (int product = 0; product < 4 * kProducts; ++product) {
#pragma unroll
    for (auto& d : sums) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }
  return sums[0][0] + sums[1][1] + sums[2][2] + sums[3][3];
}

#endif

// Both versions do 2 * 64 * 128 * 16 operations per four warps and product: 64 products with 16 x 8
// sums are as much as one with 64 x 128 sums.
__global__ void __launch_bounds__(kMatrixThreads) multiply_matrices_kernel(float* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = matrix_products();
}

RateWork multiply_matrices(float* out, Stream stream) {
  const std::int64_t blocks = std::min<std::int64_t>(8 * stream_properties(stream).multiprocessors,
                                                     kRateThreads / kMatrixThreads);
  const LaunchShape shape{blocks, 1, kMatrixThreads, 0};
  return {launch_kernel(multiply_matrices_kernel, shape, stream, out),
          static_cast<double>(blocks) * (kMatrixThreads / 128) * kProducts * 2.0 * 64 * 128 * 16};
}

}  // namespace

const RateKernels* rate_kernels() {
  static const RateKernels kernels{copy, multiply_add, multiply_matrices};
  return &kernels;
}

}  // namespace plumb::device::cuda
