// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/mhc_post.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reference/four_doubles.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

namespace {

constexpr int kTerms = kStreams + 1;

// Terms of the sums of tokens [begin, end): [tokens, 1, 5, hidden], x and then the four streams.
Tracked terms_of(const MhcPost& inputs, std::int64_t begin, std::int64_t end,
                 const Numerics& numerics) {
  const std::int64_t hidden = inputs.residual.hidden;
  std::vector<double> terms(static_cast<std::size_t>((end - begin) * kTerms * hidden));
  double* to = terms.data();
  for (std::int64_t token = begin; token < end; ++token, to += kTerms * hidden) {
    decode_bf16_array(inputs.x + token * hidden, hidden, to);
    load_token(inputs.residual, token, 0, kStreams * hidden, to + hidden);
  }
  return {std::move(terms), {end - begin, 1, kTerms, hidden}, numerics};
}

// Factors of the five terms of rows [first, last): [rows, 5]. Row token * 4 + n has post[n], then
// column n of comb.
Tracked factors_of(const MhcPost& inputs, std::int64_t first, std::int64_t last,
                   const Numerics& numerics) {
  std::vector<double> factors;
  for (std::int64_t row = first; row < last; ++row) {
    const float* comb = inputs.comb + row / kStreams * kStreams * kStreams;
    factors.push_back(inputs.post[row]);
    for (int m = 0; m < kStreams; ++m) factors.push_back(comb[m * kStreams + row % kStreams]);
  }
  return {std::move(factors), {last - first, kTerms}, numerics};
}

// Output rows [first, last): rows of one token, or all rows of several tokens.
Tracked rows_of(const MhcPost& inputs, std::int64_t first, std::int64_t last,
                const Numerics& numerics) {
  const std::int64_t begin = first / kStreams, end = (last + kStreams - 1) / kStreams;
  const std::int64_t rows_per_token = std::min<std::int64_t>(last - first, kStreams);
  Tracked factors =
      reshaped(factors_of(inputs, first, last, numerics), {end - begin, rows_per_token, kTerms, 1});
  Tracked rows = sum(std::move(factors) * terms_of(inputs, begin, end, numerics), 2);
  return reshaped(std::move(rows), {last - first, inputs.residual.hidden});
}

}  // namespace

Estimate mhc_post(const MhcPost& inputs, const Numerics& numerics) {
  const std::int64_t tokens = tokens_per_block(kTerms * inputs.residual.hidden);
  return estimate_by_blocks(inputs.residual.tokens * kStreams, tokens > 1 ? tokens * kStreams : 1,
                            Format::bf16, [&](std::int64_t first, std::int64_t last) {
                              return rows_of(inputs, first, last, numerics);
                            });
}

}  // namespace plumb::reference
