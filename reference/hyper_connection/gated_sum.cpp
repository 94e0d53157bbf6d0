// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/gated_sum.h"

#include <utility>
#include <vector>

#include "reference/four_doubles.h"
#include "reference/norm/row_norm.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// RMS norm of each row of y, [rows, hidden].
Tracked normalised(Tracked y, const FusedNorm& norm) {
  const std::int64_t hidden = y.sizes().back();
  std::vector<double> weight(static_cast<std::size_t>(hidden));
  decode_bf16_array(norm.weight, hidden, weight.data());
  const Tracked factors(std::move(weight), {hidden}, *y.node()->numerics);
  const Tracked r = rsqrt(mean(y * y, 1) + norm.eps);
  return limited_rows(rounded(std::move(y), Format::bf16) * r, r) * factors;
}

// Stream `slot` of tokens [begin, end): [end - begin, hidden].
Tracked load_slot(const Streams& streams, int slot, std::int64_t begin, std::int64_t end,
                  const Numerics& numerics) {
  std::vector<double> x(static_cast<std::size_t>((end - begin) * streams.hidden));
  for (std::int64_t token = begin; token < end; ++token) {
    decode_bf16_array(streams.data + token * streams.token_stride + slot * streams.slot_stride,
                      streams.hidden, x.data() + (token - begin) * streams.hidden);
  }
  return {std::move(x), {end - begin, streams.hidden}, numerics};
}

}  // namespace

Tracked gated_sum(const Streams& streams, std::int64_t begin, std::int64_t end,
                  const Tracked& gates, const FusedNorm& norm) {
  const auto product = [&](int slot) {
    return load_slot(streams, slot, begin, end, *gates.node()->numerics) *
           sliced(gates, 1, slot, 1);
  };
  Tracked sum = product(0);
  for (int slot = 1; slot < kStreams; ++slot) sum = std::move(sum) + product(slot);
  return norm.weight == nullptr ? sum : normalised(std::move(sum), norm);
}

}  // namespace plumb::reference
