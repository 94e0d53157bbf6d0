// SPDX-License-Identifier: Apache-2.0
//
// Some rows of a call that has too many for the reference: an excerpt of its tensors, judged by the
// op's own Problem, or stand-in, made for so few. The others are compared with the same rows of
// other engines, bit for bit, like all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cases/tables/problem.h"
#include "decode/recording/placeholder_references.h"

namespace plumb::cases {

// How many rows may be judged, chosen by the seed. Always among them: the first, the last, and
// those on both sides of where the live tokens end.
struct RowChoice {
  std::int64_t most = 0;
  std::uint64_t seed = 0;
  std::int64_t live = 0, tokens = 1;  // of the part of the step
};
std::vector<std::int64_t> choose_rows(const RowChoice& choice, std::int64_t rows);

// A call as it was recorded.
struct RecordedCall {
  const Row& row;  // of its op
  const device::Properties& properties;
  const Problem& problem;
  const plumb_numerics& declared;
  const TensorSet& tensors;
};
// Nothing for an op whose calls are cheap enough, or have few rows: all of it has to be judged.
std::optional<Expectations> expect_sample(const RecordedCall& call, const RowChoice& choice);
std::optional<Expectations> expect_sample(const PlaceholderReference& placeholder,
                                          const TensorSet& tensors, const RowChoice& choice);

}  // namespace plumb::cases
