// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/fp4_paged_mqa_logits.h"

#include <utility>
#include <vector>

#include "reference/codes.h"
#include "reference/formats/e2m1.h"
#include "reference/indexer/mqa_logits.h"

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

IndexerKeys keys_of(const Fp4PagedMqaLogits& inputs, std::int64_t request,
                    const Numerics& numerics) {
  const std::int64_t count = longest_context(inputs, request);
  std::vector<double> numbers;
  for (std::int64_t position = 0; position < count; ++position) {
    const std::uint8_t* block = block_of(inputs, request, position, inputs.page);
    const Fp4Entry entry = fp4_entry(inputs.page, inputs.dim, position % inputs.page);
    append_fp4(block + entry.codes, block + entry.scales, inputs.dim, numbers);
  }
  const std::vector<double> ones(static_cast<std::size_t>(count), 1);
  return indexer_keys(std::move(numbers), ones, false, numerics);
}

std::vector<double> queries_of(const Fp4PagedMqaLogits& inputs, std::int64_t row) {
  std::vector<double> numbers;
  const std::int64_t first = row * inputs.heads * inputs.dim;
  append_fp4(inputs.q + first / 2, inputs.q_scales + first / kMxGroup, inputs.heads * inputs.dim,
             numbers);
  return numbers;
}

}  // namespace

Fp4Entry fp4_entry(std::int64_t page, std::int64_t dim, std::int64_t token) {
  return {token * dim / 2, page * dim / 2 + token * dim / kMxGroup};
}

Estimate fp4_paged_mqa_logits(const Fp4PagedMqaLogits& inputs, const Numerics& numerics) {
  Estimate estimate = empty_logits(inputs.requests * inputs.next_n, inputs.columns);
  parallel_for(inputs.requests, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t request = begin; request < end; ++request) {
      const IndexerKeys keys = keys_of(inputs, request, numerics);
      const std::int64_t first_row = request * inputs.next_n;
      for (std::int64_t row = first_row; row < first_row + inputs.next_n; ++row) {
        score_keys(queries_of(inputs, row), inputs.weights + row * inputs.heads, inputs.heads, keys,
                   {0, context_length(inputs, row)}, numerics, row, 0, estimate);
        clean_row(inputs, row, estimate);
      }
    }
  });
  return estimate;
}

}  // namespace plumb::reference
