// SPDX-License-Identifier: Apache-2.0
//
// Products of streams with the mixing weights of the hyper-connection ops.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

// Operand that a product uses for fn: fn rounded to the declared product format, or the sum of two
// bf16 numbers, bf16(fn) and bf16 of the remainder.
enum class WeightForm { product_format, two_bf16 };

// Operand that a product uses for the streams: the stored numbers, or these times a factor of the
// token, rounded to fp32 and then to the declared product format.
enum class StreamForm { stored, scaled };

// fp32 weights of `columns` mixes for elements [begin, end) of a token.
class MixWeights {
 public:
  // `fn`: [columns, depth]
  MixWeights(const float* fn, int columns, std::int64_t depth, std::int64_t begin, std::int64_t end,
             const Numerics& numerics, WeightForm form = WeightForm::product_format,
             StreamForm streams = StreamForm::stored);
  // x [tokens, end - begin] times the weights: [tokens, columns].
  Tracked mixes(const Tracked& x) const;
  // Sums over k of function(x_k) function(fn[c,k]), of the same shape, for `rows` tokens.
  std::vector<double> sums_of(std::int64_t rows, const std::vector<double>& x,
                              double (*function)(double)) const;

 private:
  // A weight that lies on a tie and may be rounded either way.
  struct Tie {
    std::int64_t k;
    int column;
    double half;  // half a unit
  };
  Estimate operand_errors(const Tracked& x, const Tracked& mixes) const;

  int columns_;
  Numerics how_;
  WeightForm form_;
  StreamForm streams_;
  std::vector<Tie> ties_;
  Tracked weights_;  // [end - begin, columns]
};

}  // namespace plumb::reference
