// SPDX-License-Identifier: Apache-2.0
//
// Products of a token's streams with the mixing weights of the hyper-connection ops, and the errors
// of their sums in the declared numerics.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::reference {

// Operand that a product uses for fn: fn rounded to the declared product format, or the sum of two
// bf16 numbers, bf16(fn) and bf16 of the remainder.
enum class WeightForm { product_format, two_bf16 };

// Operand that a product uses for the streams: the stored bf16 numbers, or these times a factor of
// the token, rounded to fp32 and then to the declared product format.
enum class StreamForm { stored, scaled };

// fp32 weights [columns, depth] and their roundings to the declared product format. `columns` is a
// multiple of 4.
class MixWeights {
 public:
  MixWeights(const float* fn, int columns, std::int64_t depth, const Numerics& numerics,
             WeightForm form = WeightForm::product_format, StreamForm streams = StreamForm::stored);
  // sum_k x_k fn[c,k] over k in [begin, end), for each column c.
  std::vector<Uncertain> mixes(const std::vector<double>& x, std::int64_t begin,
                               std::int64_t end) const;
  // The mixes of `count` tokens.
  std::vector<std::vector<Uncertain>> mixes(const std::vector<double>* tokens, std::int64_t count,
                                            std::int64_t begin, std::int64_t end) const;
  int columns() const { return columns_; }
  std::int64_t depth() const { return depth_; }
  // sum_k |x_k fn[c,k]| over all k.
  std::vector<double> magnitudes(const std::vector<double>& x) const;

 private:
  void add_operand_roundings(const std::vector<double>& x, std::int64_t begin, std::int64_t end,
                             std::vector<Uncertain>& result) const;
  std::size_t at(int column, std::int64_t k) const;

  int columns_;
  std::int64_t depth_;
  Numerics numerics_;
  WeightForm form_;
  StreamForm streams_;
  std::vector<double> exact_;  // [columns / 4, depth, 4]
  std::vector<float>
      // Operand of the product minus exact_; empty if the format holds each weight exactly.
      rounding_;
  // For weights that are ties and may be rounded either way: half a unit; else 0. Empty if no
  // weight is a tie.
  std::vector<float> doubt_;
};

}  // namespace plumb::reference
