// SPDX-License-Identifier: Apache-2.0
//
// Matrix products. The error of an element depends on sums over its terms: of magnitudes, squares
// and errors. Each such sum is a matrix product itself, so no array has one element per term.
#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/tracked/matmul_rounding.h"
#include "reference/tracked/matmul_sums.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

using DoublesOf = std::vector<double>;
using FloatsOf = std::vector<float>;

// Number of random mixes that replace the sources of all terms.
constexpr std::size_t kMixesOfTerms = 8;

// Limits for effects and errors, because infinity * 0 would be NaN.
constexpr double kLargestEffect = 1e150, kLargestError = 1e250, kUnlimited = 1e200;

template <class Scalar>
std::vector<Scalar> each_of(const std::vector<Scalar>& from, const auto& function) {
  std::vector<Scalar> to(from.size());
  std::ranges::transform(from, to.begin(), function);
  return to;
}
DoublesOf magnitudes_of_each(const DoublesOf& from) {
  return each_of(from, [](double x) { return std::abs(x); });
}
DoublesOf squares_of_each(const DoublesOf& from) { return each_of(from, square); }
// Replaces non-finite numbers by 0. The elements of the result that depend on them are not finite
// either.
DoublesOf finite_of_each(const DoublesOf& from) {
  return each_of(from, [](double x) { return std::isfinite(x) ? x : 0; });
}
DoublesOf limited(const DoublesOf& from, double most) {
  return each_of(from, [=](double x) { return std::clamp(x, -most, most); });
}

// An operand in the forms that the products need.
struct MatmulOperand {
  const TrackedNode* node;
  bool first;  // first operand: terms along its last dimension; second: the one before
  bool finite = true, short_range = true;
  DoublesOf finite_centres;  // empty if all numbers are finite

  MatmulOperand(const TrackedNode& of, bool is_first) : node(&of), first(is_first) {
    // Squares of products of numbers in this range, and their sums, are in the range of floats.
    constexpr double kLeast = 0x1p-30, kMost = 0x1p25;
    for (const double x : all()) {
      const double size = std::abs(x);
      finite &= size < kInfinity;
      short_range &= (x == 0) | ((size >= kLeast) & (size <= kMost));
    }
    if (!finite) finite_centres = finite_of_each(all());
  }

  const DoublesOf& all() const { return node->centres.empty() ? node->values : node->centres; }
  const DoublesOf& centres() const { return finite ? all() : finite_centres; }
  DoublesOf magnitudes() const { return magnitudes_of_each(centres()); }
  DoublesOf squares() const { return squares_of_each(centres()); }
  FloatsOf short_centres() const {
    FloatsOf to(centres().size());
    std::ranges::transform(centres(), to.begin(), [](double x) { return static_cast<float>(x); });
    return to;
  }

  bool is_own_of_terms(const ErrorSource& source, std::int64_t terms) const {
    return terms > 1 && source.varies(node->sizes.size() - (first ? 1 : 2));
  }
  // The operand's source as a source of the result, without an effect.
  ErrorSource in_result(const ErrorSource& source, const TrackedSizes& sizes) const {
    const std::size_t rank = node->sizes.size(), last = sizes.size() - 1;
    ErrorSource passed{source.identity, source.base, {}, {}};
    if (rank == sizes.size()) {
      std::copy_n(source.strides.begin(), rank - 2, passed.strides.begin());
    }
    passed.strides[first ? last - 1 : last] = source.strides[first ? rank - 2 : rank - 1];
    return passed;
  }
  std::vector<LineBits> line_bits(const MatmulShape& shape) const;
};

// LineBits of the operand's rows [batches, m], or of its columns [batches, n].
std::vector<LineBits> MatmulOperand::line_bits(const MatmulShape& shape) const {
  const std::int64_t lines = first ? shape.m : shape.n;
  std::vector<LineBits> bits(static_cast<std::size_t>(shape.batches * lines));
  const DoublesOf& numbers = centres();
  const std::int64_t step = first ? 1 : shape.n;
  for (std::int64_t line = 0; line < std::ssize(bits); ++line) {
    const std::int64_t at =
        first ? line * shape.k : line / shape.n * shape.k * shape.n + line % shape.n;
    LineBits& of_line = bits[static_cast<std::size_t>(line)];
    if (node->worst.empty()) {
      of_line.add_exact(numbers.data() + at, shape.k, step);
      continue;
    }
    for (std::int64_t k = 0; k < shape.k; ++k) {
      const auto i = static_cast<std::size_t>(at + k * step);
      of_line.add(numbers[i], node->worst[i]);
    }
  }
  return bits;
}

// Sums over the terms of their magnitudes and of their squares, and over the partial sums of the
// usual orders if `orders`. They are computed in floats if the range of the numbers permits: floats
// are precise enough and take half the time.
class SumsOfTerms {
 public:
  SumsOfTerms(const MatmulOperand& a, const MatmulOperand& b, const MatmulShape& shape, bool orders,
              int chains)
      : upwards_(1 + static_cast<double>(shape.k + 8) * kUnitF32) {
    const auto of_operands = [&]<class Scalar>(const std::vector<Scalar>& x,
                                               const std::vector<Scalar>& y) {
      const auto product_of = [&](const auto& function) {
        return shape.product(each_of(x, function), each_of(y, function));
      };
      const auto sums = product_of([](Scalar number) { return std::abs(number); });
      const auto squares = product_of([](Scalar number) { return number * number; });
      magnitudes_ = {sums.begin(), sums.end()};
      squares_ = {squares.begin(), squares.end()};
      if (orders) partial_sums_ = squared_partial_sums(shape, x, y, squares, chains);
    };
    if (a.short_range && b.short_range && shape.k <= kMostInFloats) {
      of_operands(a.short_centres(), b.short_centres());
    } else {
      of_operands(a.centres(), b.centres());
      upwards_ = 1;
    }
  }
  // Sums in floats are increased to be at least the exact sums.
  TermSums of(std::size_t i, double sum) const {
    return {sum, upwards_ * magnitudes_[i], upwards_ * squares_[i],
            partial_sums_.empty() ? 0 : partial_sums_[i]};
  }

 private:
  static constexpr std::int64_t kMostInFloats = 1 << 16;

  double upwards_;
  DoublesOf magnitudes_, squares_, partial_sums_;
};

// Product of `of`, an array of this operand, with `of_other`, an array of the other one.
DoublesOf with_other(const MatmulShape& shape, const MatmulOperand& operand, const DoublesOf& of,
                     const DoublesOf& of_other) {
  return operand.first ? shape.product(of, of_other) : shape.product(of_other, of);
}

// As with_other, but each term of `of` is multiplied by its random sign in mix j.
template <class Scalar>
DoublesOf mix_with_other(const MatmulShape& shape, const MatmulOperand& operand,
                         const DoublesOf& of, std::size_t j, const std::vector<Scalar>& of_other) {
  std::vector<Scalar> mixed(of.begin(), of.end());
  const std::int64_t step = operand.first ? 1 : shape.n;  // from one term to the next
  for (std::int64_t begin = 0; begin < std::ssize(mixed); begin += step) {
    const auto term = static_cast<std::uint64_t>(begin / step % shape.k);
    if (sign_by_chance(term, j) > 0) continue;
    for (std::int64_t i = begin; i < begin + step; ++i) mixed[i] = -mixed[i];
  }
  const auto product =
      operand.first ? shape.product(mixed, of_other) : shape.product(of_other, mixed);
  return {product.begin(), product.end()};
}

// Replaces sources that differ from term to term and that elements of the result share. They become
// random mixes of all terms, whose mean covariance is that of all sources. Each element keeps its
// own variance, times a margin for the randomness. Mixes are computed in floats if the range
// suffices.
void add_mixes(const ErrorSource& source, const MatmulOperand& operand, const MatmulOperand& other,
               const MatmulShape& shape, const ErrorSource& like, TrackedNode& result) {
  constexpr double kMargin = 1.25, kLeastEffect = 0x1p-90, kMostEffect = 0x1p60;
  const DoublesOf effect = limited(source.effect, kLargestEffect);
  DoublesOf all = with_other(shape, operand, squares_of_each(effect), other.squares());
  DoublesOf of_mixes(all.size());
  const bool in_floats =
      other.short_range && std::ranges::all_of(effect, [](double e) {
        return e == 0 || (std::abs(e) >= kLeastEffect && std::abs(e) <= kMostEffect);
      });
  const FloatsOf short_other = other.short_centres();
  std::vector<ErrorSource> mixes;
  for (std::size_t j = 0; j < kMixesOfTerms; ++j) {
    mixes.push_back(
        new_source_like(like, shape.sizes,
                        in_floats ? mix_with_other(shape, operand, effect, j, short_other)
                                  : mix_with_other(shape, operand, effect, j, other.centres())));
    for (std::size_t i = 0; i < all.size(); ++i) of_mixes[i] += square(mixes.back().effect[i]);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double sigma = kMargin * std::sqrt(all[i]);
    const double scale = of_mixes[i] > 0 ? sigma / std::sqrt(of_mixes[i]) : 0;
    for (ErrorSource& mix : mixes) mix.effect[i] *= scale;
    if (!(of_mixes[i] > 0)) mixes.front().effect[i] = sigma;
  }
  add_sources(std::move(mixes), result);
}

// Propagates the sources of an operand. If all terms of an element share a source, it stays and its
// effects add up.
void add_passed_on(const MatmulOperand& operand, const MatmulOperand& other,
                   const MatmulShape& shape, TrackedNode& result) {
  for (const ErrorSource& source : operand.node->sources) {
    ErrorSource passed = operand.in_result(source, shape.sizes);
    const bool own = operand.is_own_of_terms(source, shape.k);
    if (own && is_shared(passed, shape.sizes)) {
      add_mixes(source, operand, other, shape, passed, result);
      continue;
    }
    const DoublesOf effect = limited(source.effect, kLargestEffect);
    if (own) {
      DoublesOf squares = with_other(shape, operand, squares_of_each(effect), other.squares());
      std::ranges::transform(squares, squares.begin(), [](double x) { return std::sqrt(x); });
      passed = own_source(shape.sizes, std::move(squares));
    } else {
      passed.effect = with_other(shape, operand, effect, other.centres());
    }
    std::vector<ErrorSource> one;
    one.push_back(std::move(passed));
    add_sources(std::move(one), result);
  }
}

void add_to(DoublesOf& sums, const DoublesOf& more) {
  sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

// Sums over the terms of their largest errors. Empty if no term has an error.
DoublesOf errors_of_terms(const MatmulOperand& a, const MatmulOperand& b,
                          const MatmulShape& shape) {
  DoublesOf most;
  if (!a.node->worst.empty()) {
    add_to(most, shape.product(limited(a.node->worst, kLargestError), b.magnitudes()));
  }
  if (!b.node->worst.empty()) {
    DoublesOf farthest = a.magnitudes();
    if (!a.node->worst.empty()) add_to(farthest, limited(a.node->worst, kLargestEffect));
    add_to(most, shape.product(farthest, limited(b.node->worst, kLargestEffect)));
  }
  for (double& error : most) {
    if (!(error < kUnlimited)) error = kInfinity;
  }
  return most;
}

void add_one_sided(const MatmulOperand& operand, const MatmulOperand& other,
                   const MatmulShape& shape, TrackedNode& result) {
  const DoublesOf& one_sided = operand.node->systematic;
  if (one_sided.empty()) return;
  add_to(result.systematic,
         with_other(shape, operand, limited(one_sided, kLargestEffect), other.magnitudes()));
}

// Adds the products of both operands' errors, which are not linear, unless they are negligible for
// all elements.
void add_products_of_errors(const MatmulOperand& a, const MatmulOperand& b,
                            const MatmulShape& shape, TrackedNode& result) {
  const DoublesOf of_a = a.node->reaches(), of_b = b.node->reaches();
  if (of_a.empty() || of_b.empty()) return;
  DoublesOf bent = shape.product(limited(of_a, kLargestEffect), limited(of_b, kLargestEffect));
  bool tells = false;
  for (std::size_t i = 0; i < bent.size(); ++i) {
    bent[i] /= 6;
    tells = tells || bent[i] > 0.1 * std::sqrt(result.variance(i));
  }
  if (tells) add_source(std::move(bent), true, result);
}

// Adds the roundings of all elements and returns their standard deviations.
DoublesOf add_roundings(const MatmulOperand& a, const MatmulOperand& b, const MatmulShape& shape,
                        const DoublesOf& most, const Numerics& how, TermOrder order,
                        TrackedNode& result) {
  const bool finite = a.finite && b.finite;
  const DoublesOf of_finite = finite ? DoublesOf() : shape.product(a.centres(), b.centres());
  const DoublesOf& sums = !finite                  ? of_finite
                          : result.centres.empty() ? result.values
                                                   : result.centres;
  const bool orders = order == TermOrder::usual && how.unit == SumUnit::fp32;
  const SumsOfTerms of_terms(a, b, shape, orders, how.chains);
  const MatmulRounding rounding(shape.k, how, order, a.line_bits(shape), b.line_bits(shape));
  DoublesOf own(sums.size()), bias(how.unit == SumUnit::fp32 ? 0 : sums.size());
  result.worst.resize(sums.size());
  parallel_for(shape.batches * shape.m, 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t first_column = row / shape.m * shape.n;
      for (std::int64_t n = 0; n < shape.n; ++n) {
        const auto at = static_cast<std::size_t>(row * shape.n + n);
        if (!std::isfinite(result.centre(at))) continue;  // non-finite: errors unknown
        const double of_operands = most.empty() ? 0 : most[at];
        const MatrixError error =
            rounding.of(static_cast<std::size_t>(row), static_cast<std::size_t>(first_column + n),
                        of_terms.of(at, sums[at]), of_operands);
        own[at] = error.sigma;
        if (!bias.empty()) bias[at] = error.bias;
        result.worst[at] = of_operands + error.worst;
      }
    }
  });
  if (std::ranges::any_of(bias, [](double x) { return x != 0; })) add_to(result.systematic, bias);
  return own;
}

void forget_errors_of_infinities(TrackedNode& node) {
  for (std::size_t i = 0; i < node.values.size(); ++i) {
    if (std::isfinite(node.centre(i))) continue;
    for (ErrorSource& source : node.sources) source.effect[i] = 0;
    if (!node.systematic.empty()) node.systematic[i] = 0;
  }
}

}  // namespace

Tracked matmul(Tracked first, Tracked second, const Numerics& how, TermOrder order) {
  check_alike(*first.node()->numerics, *second.node()->numerics);
  const MatmulShape shape = matmul_shape(first.sizes(), second.sizes());
  if (how.product == Format::tf32 || how.product == Format::bf16) {
    first = rounded(std::move(first), how.product);
    second = rounded(std::move(second), how.product);
  } else if (how.product == Format::tf32_truncated) {
    first = truncated(std::move(first), how.product);
    second = truncated(std::move(second), how.product);
  }
  const TrackedNode &a = *first.node(), &b = *second.node();
  TrackedNode node{shape.sizes, a.numerics, shape.product(a.values, b.values)};
  if (!a.centres.empty() || !b.centres.empty()) {
    node.centres = shape.product(first.centres(), second.centres());
  }
  const MatmulOperand left(a, true), right(b, false);
  const DoublesOf most = errors_of_terms(left, right, shape);
  DoublesOf own = add_roundings(left, right, shape, most, how, order, node);
  add_one_sided(left, right, shape, node);
  add_one_sided(right, left, shape, node);
  add_passed_on(left, right, shape, node);
  add_passed_on(right, left, shape, node);
  add_products_of_errors(left, right, shape, node);
  add_source(std::move(own), false, node);
  forget_errors_of_infinities(node);
  if (std::ranges::all_of(node.worst, [](double w) { return w == 0; })) node.worst.clear();
  join_own_sources(node);
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

Tracked matmul(Tracked first, Tracked second) {
  const Numerics how = *first.node()->numerics;
  return matmul(std::move(first), std::move(second), how);
}

}  // namespace plumb::reference
