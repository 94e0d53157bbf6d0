// SPDX-License-Identifier: Apache-2.0
//
// Arrays that carry, beside their values, what honest rounding may do to them. A reference that is
// written with them says where an implementation rounds; variances, worst cases and correlations
// follow.
//
// Every operator and function rounds its result to fp32 once, but for results that are exact
// (products of two bf16 numbers). Arrays broadcast as numpy's do. An array is immutable, and copies
// share it.
//
// An error is a linear function of independent sources, each of mean 0 and variance 1: that of one
// rounding, of which each element has its own, or that of a sum or factor which elements share. The
// same source in two operands adds up or cancels. Sums of sources that differ from element to
// element are a new source: what they have in common with their terms is forgotten. Functions take
// arrays by value: sources of one that nobody keeps become one source of the result.
//
// A divisor past the range of fp32 may be infinite, and its quotient 0. Not modelled: what else is
// past that range; a product that a compiler fuses into one sum and rounds for another (a large one
// that cancels in both).
//
// Functions in other forms than their own name, as exp2(x * log2(e)) for exp, are in other_forms.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "reference/bound.h"

namespace plumb::reference {

// Of each dimension, the last one contiguous. No dimensions: a scalar.
using TrackedSizes = std::vector<std::int64_t>;
struct TrackedNode;

class Tracked {
 public:
  // Numbers that everybody has exactly: stored inputs. `numerics`: of all that is computed of them.
  // Throws std::invalid_argument for a number of values that the sizes do not have.
  Tracked(std::vector<double> values, TrackedSizes sizes, const Numerics& numerics);
  explicit Tracked(std::shared_ptr<const TrackedNode> node) : node_(std::move(node)) {}

  const TrackedSizes& sizes() const;
  const std::vector<double>& values() const;   // exact, no rounding at all
  const std::vector<double>& centres() const;  // with the roundings that are known beforehand
  double sigma(std::int64_t i) const;
  double worst(std::int64_t i) const;
  const std::shared_ptr<const TrackedNode>& node() const { return node_; }
  // The node for whoever computes with it. It may be taken apart where nobody else has it.
  TrackedNode release() &&;

 private:
  std::shared_ptr<const TrackedNode> node_;
};

// Throw std::invalid_argument for sizes that do not broadcast.
Tracked operator+(Tracked a, Tracked b);
Tracked operator-(Tracked a, Tracked b);
Tracked operator*(Tracked a, Tracked b);
Tracked operator/(Tracked a, Tracked b);
// Constants, which every implementation rounds to fp32.
Tracked operator+(Tracked a, double b);
Tracked operator*(Tracked a, double b);
Tracked operator/(Tracked a, double b);
Tracked operator-(Tracked a);  // exact

// Within function_ulp of the declared numerics.
Tracked exp(Tracked a);
Tracked log(Tracked a);
Tracked sqrt(Tracked a);
Tracked rsqrt(Tracked a);
Tracked sigmoid(Tracked a);
Tracked tanh(Tracked a);
Tracked softplus(Tracked a);  // log(1 + exp(a))

// Exact choices. Within the errors of both operands, either may win.
Tracked max(Tracked a, Tracked b);
Tracked abs(Tracked a);
Tracked clamp(Tracked a, double least, double most);  // NaN stays

// a where the condition is not 0, b elsewhere. Throws std::invalid_argument for a condition with
// errors.
Tracked select(const Tracked& condition, Tracked a, Tracked b);

// Over one dimension, which stays with size 1, in the order that the numerics declare.
Tracked sum(Tracked a, std::size_t dimension);
Tracked mean(Tracked a, std::size_t dimension);
Tracked max(Tracked a, std::size_t dimension);
// The element at place n of the falling order; place 0 is the largest's. NaN comes last. Throws
// std::invalid_argument for a place that there is not.
Tracked nth_largest(Tracked a, std::size_t dimension, std::int64_t n);

// [.., m, k] x [k, n], or x [.., k, n] with the same first dimensions. Products and sums are those
// of `how`: in its unit, by its steps and chains, of operands that are first stored in its product
// format if that is tf32, tf32_truncated or bf16. Without `how`: those of the arrays. Errors of an
// operand stay correlated along the result's rows and columns; those that both operands share term
// by term (x times its own transpose) count as independent.
Tracked matmul(Tracked a, Tracked b, const Numerics& how);
Tracked matmul(Tracked a, Tracked b);

// Stored in this format in between. Where nobody's error reaches the next number, everybody stores
// the same one, and its distance from the exact value is known.
Tracked rounded(Tracked a, Format format);
Tracked truncated(Tracked a, Format format);  // towards zero; quantized.h has codes

// The same elements under other sizes; [first, first + count) of a dimension; arrays one after the
// other along a dimension. Elements that two of them have in common have the same errors.
Tracked reshaped(Tracked a, TrackedSizes sizes);
Tracked broadcast_to(Tracked a, const TrackedSizes& sizes);
Tracked sliced(Tracked a, std::size_t dimension, std::int64_t first, std::int64_t count);
Tracked joined(const std::vector<Tracked>& parts, std::size_t dimension);
Tracked transposed(Tracked a);  // the last two dimensions
// Row indices[i] of the dimension at place i; row i at place indices[i] of `size`, and 0 elsewhere.
// Throw std::invalid_argument for indices that there are not, or to which two rows go.
Tracked gather(Tracked a, std::size_t dimension, const std::vector<std::int64_t>& indices);
Tracked scatter(const Tracked& a, std::size_t dimension, const std::vector<std::int64_t>& indices,
                std::int64_t size);

// Rows are those of the last dimension. `structured`: terms are equal, or their roundings repeat
// each other for another reason, so that the worst cases hold alone.
Estimate estimate_of(const Tracked& a, Format output, bool structured = false);

// a with more errors, which were derived by hand: those of the estimate's rows from `first_row` on,
// and their shift. Each element has its own. Throws std::invalid_argument for too few rows.
Tracked with_errors(Tracked a, const Estimate& errors, std::int64_t first_row = 0);

// estimate_of `rows` rows that have nothing to do with each other, `rows_per_block` at a time, on
// all cores. of_rows(begin, end): rows [begin, end), and of (0, 0) no row of as many columns.
// Blocks of 2^12 to 2^14 elements stay in a core's cache. Throws std::invalid_argument where the
// blocks have other sizes.
Estimate estimate_by_blocks(
    std::int64_t rows, std::int64_t rows_per_block, Format output,
    const std::function<Tracked(std::int64_t begin, std::int64_t end)>& of_rows,
    bool structured = false);

}  // namespace plumb::reference
