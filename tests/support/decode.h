// SPDX-License-Identifier: Apache-2.0
//
// A small decode in the style of sparse MLA: every token attends N keys of its own, shared by all
// heads. Has the truth in double precision with its bounds, and an fp32 kernel made of replaceable
// parts, so that tests can plant faults without a switch in the kernel.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <vector>

#include "cases/tensors/tensor.h"
#include "reference/bound.h"

namespace plumb::tests {

struct DecodeShape {
  int tokens, heads, width, keys;
  int key_width;
  int rows() const { return tokens * heads; }
  int elements() const { return rows() * width; }
};

enum class Values {
  independent,
  shared,    // all elements of a key's V are equal
  near_one,  // 1 + small noise
};

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The inputs of a decode. All are representable in bf16; logits have a standard deviation of 1.
struct Decode {
  struct Token {
    Matrix query, key, value;  // [heads, key_width], [keys, key_width], [keys, width]
  };
  DecodeShape shape;
  std::vector<Token> tokens;
  double scale() const;
};
Decode make_decode(const DecodeShape& shape, Values values, std::uint64_t seed);

// The estimate for a kernel that rounds p to bf16, accumulates in fp32 and stores bf16.
reference::Estimate estimate_decode(const Decode& decode);

// The kernel: one softmax per split, over the listed keys; the partial results are combined by
// their LSE.
struct Kernel {
  std::vector<std::vector<int>> splits;
  double scale_factor = 1;
  float (*round_probability)(float) = nullptr;
  void (*accumulate)(float* sums, float p, const float* value, int width) = nullptr;
};
Kernel honest_kernel(const DecodeShape& shape);
std::vector<float> run(const Kernel& kernel, const Decode& decode);  // fp32, before the store

float to_bf16(float x);
float to_bf16_truncated(float x);
float to_three_bits(float x);  // rounds to three bits of the significand after the leading one
float unrounded(float x);
void accumulate_f32(float* sums, float p, const float* value, int width);
void accumulate_bf16(float* sums, float p, const float* value, int width);

// The stored output: bf16 [tokens, heads, width].
cases::HostTensor store(const DecodeShape& shape, const std::vector<float>& out,
                        float (*rounding)(float) = to_bf16);

}  // namespace plumb::tests
