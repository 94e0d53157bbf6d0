// SPDX-License-Identifier: Apache-2.0
//
// Shared by the cases of both logits ops: fp8 queries and keys with their scales, weights, and the
// layout of the logits.
//
//   exact        small integers, scales that are powers of two: every order gives the same bits
//   real         vectors quantised as in indexers; norms differ much between heads and tokens;
//                outlier channels; tokens with one spike, under whose scale all else underflows to
//                +-0; scales with and without a mantissa
//   adversarial  special codes, all the largest, all zero, equal tokens; weights 0, negative, huge
#pragma once

#include <cstdint>
#include <string_view>

#include "cases/tables/dialect.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "reference/formats/e4m3.h"

namespace plumb::cases {

// product: DeepGEMM, AITER. operand: vLLM's torch fallback for paged keys.
inline const ContractChoice kScaledKeys{
    "scaled",
    {"product", "operand"},
    "what a key's scale multiplies: its scores, or the key in front of the product",
    {{"product", "operand", "a wider error"}}};

// Fills the keys of a step. The content of a key follows from its position.
struct KeyFill {
  const Step& step;
  std::uint64_t seed = 0;
  std::int64_t dim = 0;
  reference::Dialect dialect = reference::Dialect::e4m3fn;

  // Writes the `dim` codes of key `position` and returns its scale.
  float write(std::int64_t position, std::uint8_t* codes) const;
};

// Fills q (u8 [..., heads, dim]) and weights ([rows, heads]). Rows [0, live) follow the step's
// fill, all others are dead.
void fill_queries(const Step& step, std::int64_t live, reference::Dialect dialect, HostTensor& q,
                  HostTensor& weights);

// Fills the weights of rows [0, live), as the step's fill says; all others are dead.
void fill_head_weights(const Step& step, std::int64_t live, HostTensor& weights);

// Rows of logits are padded to a multiple of 256 elements, as in DeepGEMM. A kernel may write the
// padding.
Formula padded_columns(const Formula& columns);

// Simulated work of scoring `columns` columns of `rows` rows, as
// device/kernels/indexer/mqa_logits.h does it. logits_reference_cost is that of the reference.
double logits_cost(std::int64_t rows, std::int64_t columns, std::int64_t heads, std::int64_t dim);
// Multiply-adds of the dot products, and of the sum over the heads.
double logits_multiply_adds(std::int64_t rows, std::int64_t columns, std::int64_t heads,
                            std::int64_t dim);
double logits_reference_cost(std::int64_t rows, std::int64_t columns, std::int64_t heads,
                             std::int64_t dim);
inline constexpr double kLogitsCheckedFactor = 150;

}  // namespace plumb::cases
