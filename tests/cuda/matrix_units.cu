// SPDX-License-Identifier: Apache-2.0
//
// Compares the matrix units of an sm90 card with reference/matrix_unit.h, bit for bit, over random
// and structured sums. Prints "N of N equal" for each unit, and the first differences. The exit
// code is 1 if any sum differs.
//
// A block of 128 threads computes 64 x 8 sums. A row of operands has 32 bytes per instruction in
// every format, so fragments of all formats are the same 32-bit words: thread t of a group of four
// has words t and t + 4 of rows g and g + 8.
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "reference/matrix_unit.h"

namespace {

using plumb::reference::MatrixUnit;

constexpr int kRows = 64, kColumns = 8, kRowBytes = 32;
constexpr int kSums = kRows * kColumns;

enum class Operation { wgmma_bf16, wgmma_e4m3, wgmma_tf32, mma_bf16 };

__device__ std::uint32_t word(const std::uint8_t* rows, int row, int steps, int step, int t) {
  std::uint32_t result;
  memcpy(&result, rows + (row * steps + step) * kRowBytes + 4 * t, sizeof result);
  return result;
}

// wgmma descriptor: K-major, not swizzled, two core matrices of 8 rows x 16 bytes, 128 bytes apart.
__device__ std::uint64_t descriptor(const void* shared) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared));
  constexpr std::uint64_t kApart = 128 >> 4;
  return (address & 0x3ffff) >> 4 | kApart << 16 | kApart << 32;
}

#define PLUMB_WGMMA(shape, types, transposed)                                    \
  asm volatile("wgmma.mma_async.sync.aligned." shape ".f32." types               \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1" transposed ";" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

template <Operation kOperation>
__device__ void warp_group_step(float (&d)[4], const std::uint32_t (&a)[4], std::uint64_t b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  if constexpr (kOperation == Operation::wgmma_bf16) PLUMB_WGMMA("m64n8k16", "bf16.bf16", ", 0");
  if constexpr (kOperation == Operation::wgmma_e4m3) PLUMB_WGMMA("m64n8k32", "e4m3.e4m3", "");
  if constexpr (kOperation == Operation::wgmma_tf32) PLUMB_WGMMA("m64n8k8", "tf32.tf32", "");
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}

__device__ void warp_step(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

constexpr int kMostSteps = 8;

// sums += a b. a: [blocks, 64, steps x 32 bytes], b: [blocks, 8, steps x 32 bytes], sums: [blocks,
// 64, 8].
template <Operation kOperation>
__global__ void __launch_bounds__(128)
    multiply(const std::uint8_t* a, const std::uint8_t* b, float* sums, int steps) {
  __shared__ alignas(128) std::uint8_t shared[kMostSteps * kColumns * kRowBytes];
  const std::int64_t row_bytes = steps * kRowBytes;
  a += blockIdx.x * kRows * row_bytes;
  b += blockIdx.x * kColumns * row_bytes;
  sums += static_cast<std::int64_t>(blockIdx.x) * kSums;
  for (int i = threadIdx.x; i < kColumns * row_bytes; i += 128) {
    const int column = i / row_bytes, step = i % row_bytes / kRowBytes, byte = i % kRowBytes;
    shared[step * 256 + byte / 16 * 128 + column * 16 + byte % 16] = b[i];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, row = threadIdx.x / 32 * 16 + g;
  float* own[4] = {&sums[row * 8 + 2 * t], &sums[row * 8 + 2 * t + 1], &sums[(row + 8) * 8 + 2 * t],
                   &sums[(row + 8) * 8 + 2 * t + 1]};
  float d[4] = {*own[0], *own[1], *own[2], *own[3]};
  for (int step = 0; step < steps; ++step) {
    const std::uint32_t left[4] = {word(a, row, steps, step, t), word(a, row + 8, steps, step, t),
                                   word(a, row, steps, step, t + 4),
                                   word(a, row + 8, steps, step, t + 4)};
    if constexpr (kOperation <= Operation::wgmma_tf32) {
      warp_group_step<kOperation>(d, left, descriptor(shared + step * 256));
    } else {
      const std::uint32_t right[2] = {word(b, g, steps, step, t), word(b, g, steps, step, t + 4)};
      warp_step(d, left, right);
    }
  }
  for (int i = 0; i < 4; ++i) *own[i] = d[i];
}

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(2);
}

// Kind of the operands of a block; block b has kind b % kFills.
enum Fill {
  similar,
  wide,
  structured,
  any_code,
  subnormal,
  with_zeros,
  cancelling,
  far_accumulator
};
constexpr int kFills = 8;
constexpr const char* kFillNames[] = {"similar",   "wide",       "structured", "any code",
                                      "subnormal", "with zeros", "cancelling", "far accumulator"};

std::uint64_t random_bits(std::uint64_t counter) {
  std::uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// A number with `places` significand bits behind the first one, and an exponent in [least, least +
// count).
float number(std::uint64_t r, int places, int least, int count) {
  const auto significand = static_cast<double>(1 + std::ldexp(r >> 40 & 0x7fffff, -23));
  const double cut = std::floor(std::ldexp(significand, places));
  const int exponent = least + static_cast<int>((r >> 20 & 0xfffff) % count);
  return static_cast<float>(std::ldexp(r & 1 ? -cut : cut, exponent - places));
}

struct Format {
  // places: significand bits behind the first; least, most: exponents of normal numbers
  int places, least, most, bytes;
};
constexpr Format kBf16{7, -126, 127, 2}, kE4m3{3, -6, 8, 1}, kTf32{10, -126, 127, 4};

float operand(const Format& format, Fill fill, bool left, std::uint64_t r) {
  const bool narrow = format.bytes == 1;
  const int span = narrow ? 5 : 8;
  switch (fill) {
    case similar: return number(r, format.places, -span / 2, span);
    case wide: return number(r, format.places, narrow ? -6 : -20, narrow ? 14 : 40);
    case structured: return r % 4 == 0 ? 1 : r % 4 == 1 ? 1.125F : r % 4 == 2 ? 1.5F : 1.875F;
    case any_code:  // no product reaches infinity
      return number(r, format.places, narrow ? -6 : -60, narrow ? 14 : 120);
    case subnormal:  // left operands only; right ones are normal
      if (!left) return number(r, format.places, narrow ? -6 : 0, narrow ? 14 : 40);
      return std::ldexp(number(r, 2, 0, 2),
                        format.least - format.places + static_cast<int>(r >> 9 & 3));
    case with_zeros: return r % 3 == 0 ? (r & 8 ? -0.0F : 0.0F) : number(r, format.places, -2, 5);
    case cancelling: return number(r, format.places / 2, -1, 2);
    case far_accumulator: return number(r, format.places, -span / 2, span);
  }
  return 0;
}

float accumulator(const Format& format, Fill fill, std::uint64_t r) {
  switch (fill) {
    case structured: return r % 2 ? std::ldexp(1.0F, static_cast<int>(r >> 8 & 15)) : 0;
    case any_code: return number(r, 23, -100, 200);
    case subnormal: return number(r, 23, format.least - 8, format.bytes == 1 ? 16 : 44);
    case with_zeros: return r % 2 ? -0.0F : 0.0F;
    case far_accumulator: return number(r, 23, -30, 60);
    default: return number(r, 23, -6, 12);
  }
}

std::uint32_t code(const Format& format, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (format.bytes == 4) return bits & ~0x1fffU;  // a unit ignores the bits that tf32 does not have
  if (format.bytes != 1) return bits >> (32 - 8 * format.bytes);
  const std::uint32_t sign = bits >> 24 & 0x80;
  const float size = std::min(std::abs(x), 448.0F);
  if (size < 0x1p-6F) return sign | static_cast<std::uint32_t>(size * 512);
  return sign | (std::bit_cast<std::uint32_t>(size) >> 20) - (120 << 3);
}

float value(const Format& format, std::uint32_t code) {
  if (format.bytes != 1) return std::bit_cast<float>(code << (32 - 8 * format.bytes));
  const std::uint32_t size = code & 0x7f;
  const float magnitude = size < 8 ? std::ldexp(static_cast<float>(size), -9)
                                   : std::bit_cast<float>((size + (120 << 3)) << 20);
  return code & 0x80 ? -magnitude : magnitude;
}

// Operands of all blocks, as codes and as the values of these codes.
struct Operands {
  std::vector<std::uint8_t> codes;
  std::vector<float> values;

  Operands(const Format& format, std::int64_t blocks, std::int64_t per_block, bool left,
           std::uint64_t seed)
      : codes(blocks * per_block * format.bytes), values(blocks * per_block) {
    for (std::int64_t i = 0; i < std::ssize(values); ++i) {
      const auto fill = static_cast<Fill>(i / per_block % kFills);
      const std::uint32_t bits = code(format, operand(format, fill, left, random_bits(seed + i)));
      std::memcpy(&codes[i * format.bytes], &bits, format.bytes);
      values[i] = value(format, bits);
    }
  }
};

template <class T>
T* on_device(const std::vector<T>& from) {
  T* memory = nullptr;
  check(cudaMalloc(&memory, from.size() * sizeof(T)));
  check(cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

std::vector<float> run(void (*kernel)(const std::uint8_t*, const std::uint8_t*, float*, int),
                       const Operands& a, const Operands& b, std::vector<float> sums, int steps) {
  std::uint8_t *const left = on_device(a.codes), *const right = on_device(b.codes);
  float* const result = on_device(sums);
  kernel<<<static_cast<unsigned>(sums.size() / kSums), 128>>>(left, right, result, steps);
  check(cudaGetLastError());
  check(cudaMemcpy(sums.data(), result, sums.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (void* memory :
       {static_cast<void*>(left), static_cast<void*>(right), static_cast<void*>(result)}) {
    check(cudaFree(memory));
  }
  return sums;
}

struct Tally {
  std::int64_t equal = 0, all = 0, different[kFills] = {};
  int shown = 0;
};

void show(const MatrixUnit& unit, const float* a, const float* b, std::int64_t terms, float start,
          float got, float expected) {
  std::printf("  got %a, expected %a, accumulator %a, %lld terms in steps of %d\n", got, expected,
              start, static_cast<long long>(terms), unit.step);
  for (std::int64_t i = 0; i < terms; ++i) std::printf("    %a * %a\n", a[i], b[i]);
}

void compare(const MatrixUnit& unit, const Format& format, const Operands& a, const Operands& b,
             const std::vector<float>& start, const std::vector<float>& got, int steps,
             Tally& tally) {
  const std::int64_t terms = steps * kRowBytes / format.bytes;
  for (std::int64_t i = 0; i < std::ssize(got); ++i) {
    const float* left = &a.values[i / kColumns * terms];
    const float* right = &b.values[(i / kSums * kColumns + i % kColumns) * terms];
    const float expected = plumb::reference::matrix_sum(unit, left, right, terms, start[i]);
    const bool equal =
        std::bit_cast<std::uint32_t>(expected) == std::bit_cast<std::uint32_t>(got[i]);
    ++tally.all;
    tally.equal += equal;
    if (equal) continue;
    ++tally.different[i / kSums % kFills];
    if (steps == 1 && tally.shown++ < 6) show(unit, left, right, terms, start[i], got[i], expected);
  }
}

template <Operation kOperation>
bool test(const char* name, const MatrixUnit& unit, const Format& format, std::int64_t blocks) {
  Tally tally;
  for (const int steps : {1, 2, kMostSteps}) {
    const std::int64_t terms = steps * kRowBytes / format.bytes;
    const std::uint64_t seed = static_cast<std::uint64_t>(steps) << 40;
    const Operands a(format, blocks, kRows * terms, true, seed);
    const Operands b(format, blocks, kColumns * terms, false, seed + (std::uint64_t{1} << 38));
    std::vector<float> start(blocks * kSums);
    for (std::int64_t i = 0; i < std::ssize(start); ++i) {
      const auto fill = static_cast<Fill>(i / kSums % kFills);
      start[i] = accumulator(format, fill, random_bits(seed + (std::uint64_t{1} << 39) + i));
    }
    compare(unit, format, a, b, start, run(&multiply<kOperation>, a, b, start, steps), steps,
            tally);
  }
  std::printf("%-12s %lld of %lld equal\n", name, static_cast<long long>(tally.equal),
              static_cast<long long>(tally.all));
  for (int fill = 0; fill < kFills; ++fill) {
    if (tally.different[fill] == 0) continue;
    std::printf("  %s: %lld different\n", kFillNames[fill],
                static_cast<long long>(tally.different[fill]));
  }
  return tally.equal == tally.all;
}

}  // namespace

int main(int count, char** arguments) {
  using namespace plumb::reference;
  // Number of blocks of 512 sums, for each of three lengths of chains.
  const std::int64_t blocks = count > 1 ? std::max(8LL, std::atoll(arguments[1])) : 1024;
  MatrixUnit tf32 = kSm90Bf16;
  tf32.step = 8;
  bool equal = test<Operation::wgmma_bf16>("wgmma bf16", kSm90Bf16, kBf16, blocks);
  equal &= test<Operation::wgmma_e4m3>("wgmma e4m3", kSm90Fp8, kE4m3, blocks);
  equal &= test<Operation::wgmma_tf32>("wgmma tf32", tf32, kTf32, blocks);
  equal &= test<Operation::mma_bf16>("mma bf16", kSm90Bf16, kBf16, blocks);
  return equal ? 0 : 1;
}
