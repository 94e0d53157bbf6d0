// SPDX-License-Identifier: Apache-2.0
//
// Arrays that carry their values and the rounding errors that a correct kernel may have. A
// reference written with them states where an implementation rounds. Variances, worst cases and
// correlations follow.
//
// Every operator and function rounds its result to fp32 once, unless the result is exact (such as a
// product of two bf16 numbers). Arrays broadcast as in numpy. An array is immutable, and copies
// share its data.
//
// An error is a linear function of independent sources, each with mean 0 and variance 1. A source
// is a rounding, which each element has for itself, or the error of a sum or factor that elements
// share. The effects of one source in two operands add up or cancel. A sum of sources that differ
// from element to element becomes a new source, whose correlation with its terms is lost. Functions
// take arrays by value: if an array is not used elsewhere, its sources are joined into one source
// of the result.
//
// A divisor past the range of fp32 may be infinite, and its quotient 0. Not modelled: other results
// past that range; a product that a compiler fuses into one sum but rounds for another (if a large
// product cancels in both).
//
// Functions that GPUs compute in another form, such as exp as exp2(x * log2(e)), are in
// other_forms.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "reference/bound.h"

namespace plumb::reference {

// Size of each dimension; the last one is contiguous. Empty: a scalar.
using TrackedSizes = std::vector<std::int64_t>;
struct TrackedNode;

class Tracked {
 public:
  // Exact numbers: stored inputs. `numerics`: of all results computed from them. Throws
  // std::invalid_argument if the number of values does not match the sizes.
  Tracked(std::vector<double> values, TrackedSizes sizes, const Numerics& numerics);
  explicit Tracked(std::shared_ptr<const TrackedNode> node) : node_(std::move(node)) {}

  const TrackedSizes& sizes() const;
  const std::vector<double>& values() const;   // exact, without any rounding
  const std::vector<double>& centres() const;  // with the predictable roundings added
  double sigma(std::int64_t i) const;
  double worst(std::int64_t i) const;
  const std::shared_ptr<const TrackedNode>& node() const { return node_; }
  // The node, for computations that may move its buffers out if no other array uses them.
  TrackedNode release() &&;

 private:
  std::shared_ptr<const TrackedNode> node_;
};

// These throw std::invalid_argument for sizes that do not broadcast.
Tracked operator+(Tracked a, Tracked b);
Tracked operator-(Tracked a, Tracked b);
Tracked operator*(Tracked a, Tracked b);
Tracked operator/(Tracked a, Tracked b);
// The constant b is rounded to fp32 in every implementation.
Tracked operator+(Tracked a, double b);
Tracked operator*(Tracked a, double b);
Tracked operator/(Tracked a, double b);
Tracked operator-(Tracked a);  // exact

// Functions with an error of at most function_ulp of the declared numerics.
Tracked exp(Tracked a);
Tracked log(Tracked a);
Tracked sqrt(Tracked a);
Tracked rsqrt(Tracked a);
Tracked sigmoid(Tracked a);
Tracked tanh(Tracked a);
Tracked softplus(Tracked a);  // log(1 + exp(a))

// The same numbers. In slice i of the first dimension, numbers of right kernels are at most
// sizes[i]. Larger errors are replaced: such a number may be anything up to this size, and all of
// them may be 0 together. Throws std::invalid_argument for another number of sizes.
Tracked limited(Tracked a, const std::vector<double>& sizes);

// Exact selections. If operands are closer than their errors, either may be selected.
Tracked max(Tracked a, Tracked b);
Tracked abs(Tracked a);
Tracked clamp(Tracked a, double least, double most);  // NaN stays NaN

// Elements of a if the condition is not 0, else of b. Throws std::invalid_argument for a condition
// with errors.
Tracked select(const Tracked& condition, Tracked a, Tracked b);

// Reductions over one dimension, which stays with size 1. Sums are added in the order that the
// numerics declare.
Tracked sum(Tracked a, std::size_t dimension);
Tracked mean(Tracked a, std::size_t dimension);
Tracked max(Tracked a, std::size_t dimension);
// The element at place n of the descending order; place 0 is the largest. NaN comes last. Throws
// std::invalid_argument if n is outside the dimension.
Tracked nth_largest(Tracked a, std::size_t dimension, std::int64_t n);

// Order in which fp32 sums of the declared number of chains add their terms. `usual`: ascending in
// one chain, or distributed to two or four lanes. Bounds are then up to a third tighter, because
// they have no allowance for unlucky orders.
enum class TermOrder { any, usual };

// [.., m, k] x [k, n], or x [.., k, n] with the same first dimensions. `how` declares the
// arithmetic: matrix unit, step, chains, and the product format (tf32, tf32_truncated or bf16) to
// which operands are rounded first. Without `how`: the numerics of the arrays. Errors of an operand
// stay correlated along the result's rows and columns. Errors that both operands share term by term
// (x times its own transpose) count as independent.
Tracked matmul(Tracked a, Tracked b, const Numerics& how, TermOrder order = TermOrder::any);
Tracked matmul(Tracked a, Tracked b);

// Rounds to a format in which a kernel stores the array in between. If no error of a correct kernel
// reaches the next number, all kernels store the same number, and its distance from the exact value
// is known.
Tracked rounded(Tracked a, Format format);
Tracked truncated(Tracked a, Format format);  // rounded towards zero; for codes see quantized.h

// Views: the elements with other sizes; elements [first, first + count) of a dimension; arrays
// concatenated along a dimension. Elements that two views have in common have the same errors.
Tracked reshaped(Tracked a, TrackedSizes sizes);
Tracked broadcast_to(Tracked a, const TrackedSizes& sizes);
Tracked sliced(Tracked a, std::size_t dimension, std::int64_t first, std::int64_t count);
Tracked joined(const std::vector<Tracked>& parts, std::size_t dimension);
Tracked transposed(Tracked a);  // swaps the last two dimensions
// gather: place i of the result is row indices[i] of the dimension. scatter: place indices[i] of
// the result, of `size` rows, is row i; all other rows are 0. Both throw std::invalid_argument for
// indices out of range; scatter also for repeated indices.
Tracked gather(Tracked a, std::size_t dimension, const std::vector<std::int64_t>& indices);
Tracked scatter(const Tracked& a, std::size_t dimension, const std::vector<std::int64_t>& indices,
                std::int64_t size);

// Converts to an estimate whose rows are those of the last dimension. `structured`: terms are
// equal, or their roundings repeat for another reason, so only the worst cases hold.
Estimate estimate_of(const Tracked& a, Format output, bool structured = false);

// Adds errors that were derived by hand: rows of the estimate from `first_row` on, and their shift.
// Each element has its own error. Throws std::invalid_argument if the estimate has too few rows.
Tracked with_errors(Tracked a, const Estimate& errors, std::int64_t first_row = 0);

// estimate_of for `rows` independent rows, `rows_per_block` at a time, on all cores. of_rows(begin,
// end) returns rows [begin, end); of_rows(0, 0) returns no rows but the same number of columns.
// Blocks of 2^12 to 2^14 elements fit into a core's cache. Throws std::invalid_argument if blocks
// have other sizes.
Estimate estimate_by_blocks(
    std::int64_t rows, std::int64_t rows_per_block, Format output,
    const std::function<Tracked(std::int64_t begin, std::int64_t end)>& of_rows,
    bool structured = false);

}  // namespace plumb::reference
