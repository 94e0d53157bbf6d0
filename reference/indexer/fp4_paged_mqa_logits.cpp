// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/fp4_paged_mqa_logits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reference/codes.h"
#include "reference/formats/e2m1.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

namespace {

constexpr std::int64_t kMxGroup = 32;

// Appends the numbers of one vector. They have three bits, so that all of them, and their
// products, are exact.
void append_fp4(const std::uint8_t* codes, const std::uint8_t* scales, std::int64_t dim,
                std::vector<double>& numbers) {
  for (std::int64_t d = 0; d < dim; ++d) {
    const double scale = decode(CodeFormat::ue8m0, scales[d / kMxGroup]);
    const auto odd = static_cast<int>(d % 2);
    numbers.push_back(scale * decode_e2m1(unpack_e2m1(codes[d / 2], odd)));
  }
}

Tracked keys_of(const Fp4PagedMqaLogits& inputs, std::int64_t request, std::int64_t count,
                const Numerics& numerics) {
  std::vector<double> numbers;
  for (std::int64_t position = 0; position < count; ++position) {
    const std::uint8_t* block = block_of(inputs, request, position, inputs.page);
    const Fp4Entry entry = fp4_entry(inputs.page, inputs.dim, position % inputs.page);
    append_fp4(block + entry.codes, block + entry.scales, inputs.dim, numbers);
  }
  return {std::move(numbers), {count, inputs.dim}, numerics};
}

Tracked queries_of(const Fp4PagedMqaLogits& inputs, std::int64_t row, const Numerics& numerics) {
  std::vector<double> numbers;
  for (std::int64_t i = row * inputs.heads; i < (row + 1) * inputs.heads; ++i) {
    append_fp4(inputs.q + i * inputs.dim / 2, inputs.q_scales + i * inputs.dim / kMxGroup,
               inputs.dim, numbers);
  }
  return {std::move(numbers), {inputs.heads, inputs.dim}, numerics};
}

// The scores of one row, [1, keys].
Tracked scores_of(const Fp4PagedMqaLogits& inputs, std::int64_t row, const Tracked& keys,
                  const Numerics& numerics) {
  const float* weights = inputs.weights + row * inputs.heads;
  const Tracked weight({weights, weights + inputs.heads}, {inputs.heads, 1}, numerics);
  Numerics any_order = numerics;
  any_order.chains = 1;  // one chain: the order of a dot product with the largest error
  Tracked dots = matmul(queries_of(inputs, row, numerics), transposed(keys), any_order);
  return sum(clamp(std::move(dots), 0, kInfinity) * weight, 0);
}

// Copies a row's scores to the first columns of its row in the estimate.
void place_scores(const Estimate& scores, std::int64_t row, Estimate& estimate) {
  const std::int64_t begin = row * estimate.columns;
  std::ranges::copy(scores.value, estimate.value.begin() + begin);
  std::ranges::copy(scores.sigma, estimate.sigma.begin() + begin);
  std::ranges::copy(scores.worst, estimate.worst.begin() + begin);
  std::ranges::copy(scores.shift, estimate.shift.begin() + (scores.shift.empty() ? 0 : begin));
  const double share = static_cast<double>(scores.columns) / static_cast<double>(estimate.columns);
  const auto at = static_cast<std::size_t>(row);
  estimate.row_mean_sigma[at] = share * scores.row_mean_sigma.front();
  estimate.row_systematic[at] = share * scores.row_systematic.front();
}

}  // namespace

Fp4Entry fp4_entry(std::int64_t page, std::int64_t dim, std::int64_t token) {
  return {token * dim / 2, page * dim / 2 + token * dim / kMxGroup};
}

Estimate fp4_paged_mqa_logits(const Fp4PagedMqaLogits& inputs, const Numerics& numerics) {
  Estimate estimate;
  estimate.output = Format::f32;
  estimate.resize(inputs.requests * inputs.next_n, inputs.columns);
  estimate.shift.resize(estimate.value.size());
  parallel_for(inputs.requests, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t request = begin; request < end; ++request) {
      const std::int64_t longest = longest_context(inputs, request);
      const Tracked keys = keys_of(inputs, request, longest, numerics);
      for (std::int64_t query = 0; query < inputs.next_n; ++query) {
        const std::int64_t row = request * inputs.next_n + query;
        const std::int64_t length = context_length(inputs, row);
        if (length > 0) {
          const Tracked own = length == longest ? keys : sliced(keys, 0, 0, length);
          place_scores(estimate_of(scores_of(inputs, row, own, numerics), Format::f32), row,
                       estimate);
        }
        clean_row(inputs, row, estimate);
      }
    }
  });
  return estimate;
}

}  // namespace plumb::reference
