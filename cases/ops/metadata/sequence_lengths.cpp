// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/metadata/sequence_lengths.h"

#include <algorithm>

#include "cases/tensors/fill.h"

namespace plumb::cases {

TensorSpec SequenceLengths::spec(std::string name) const {
  TensorSpec spec{std::move(name), Dtype::i32, {requests, per_request()}, {}, Role::input, false};
  spec.strides = {stride(), 1};
  return spec;
}

std::int64_t SequenceLengths::of(const Step& step, std::int64_t request) const {
  const std::int64_t turn = integer(mix(step.seed, 1), 0, 0, step.live - 1);
  return std::max<std::int64_t>(0, length - length_step * ((request + turn) % step.live));
}

void SequenceLengths::fill(const Step& step, HostTensor& lengths) const {
  for (std::int64_t request = 0; request < requests; ++request) {
    const std::int64_t own = request < step.live ? of(step, request) : 0;
    for (std::int64_t query = 0; query < per_request(); ++query) {
      // 2-D lengths: each earlier query sees two columns less, where the 1-D formula would take one
      // less. In short sequences these lengths are below 0.
      const std::int64_t less = dims == 2 && own > 0 ? 2 * (next_n - 1 - query) : 0;
      lengths.row<std::int32_t>(request)[query] = static_cast<std::int32_t>(own - less);
    }
  }
}

SequenceLengths sequence_lengths(const Row& row, std::string_view dims, std::string_view gap) {
  return {.requests = row.integer("requests"),
          .next_n = row.integer("next_n"),
          .dims = row.integer(dims),
          .length = row.integer("length"),
          .length_step = row.integer("length_step"),
          .gap = row.integer(gap)};
}

}  // namespace plumb::cases
