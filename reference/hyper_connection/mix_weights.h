// SPDX-License-Identifier: Apache-2.0
//
// Products of a token's streams with the mixing weights of the hyper-connection ops: values, and
// how far sums in the declared numerics may be from them.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::reference {

// What a product takes of fn: what the declared format makes of it, or the sum of two bf16 numbers,
// bf16(fn) and bf16 of the rest.
enum class WeightForm { product_format, two_bf16 };

// What a product takes of the streams: bf16 numbers, or these times a factor of the token, which
// is rounded to fp32 and to the declared product format.
enum class StreamForm { stored, scaled };

// fp32 [columns, depth] and what the declared product format makes of it; columns a multiple of 4.
class MixWeights {
 public:
  MixWeights(const float* fn, int columns, std::int64_t depth, const Numerics& numerics,
             WeightForm form = WeightForm::product_format, StreamForm streams = StreamForm::stored);
  // sum_k x_k fn[c,k] of k in [begin, end), one per column.
  std::vector<Uncertain> mixes(const std::vector<double>& x, std::int64_t begin,
                               std::int64_t end) const;
  // The same of several tokens.
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
      rounding_;              // operand of the product minus exact_; empty if the format keeps it
  std::vector<float> doubt_;  // ties, which may go either way: half a unit there; empty if none
};

}  // namespace plumb::reference
