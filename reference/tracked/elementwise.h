// SPDX-License-Identifier: Apache-2.0
//
// How a function of one or two arrays propagates errors: linearly, with slopes over the reach (the
// limit of the errors of a correct kernel), and with a largest error that each function computes
// itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "reference/tracked/four_elements.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

enum class ResultRounding { none, fp32, function };

// Throws std::invalid_argument for sizes that do not broadcast.
TrackedSizes broadcast_sizes(const TrackedSizes& a, const TrackedSizes& b);
// Where an operand is read for the elements of the result. Line l (along the last dimension) starts
// at first[l] and continues with `step`, which is 0 or 1.
struct BroadcastLines {
  std::vector<std::size_t> first;
  std::size_t step = 1, length = 1;
};
BroadcastLines broadcast_lines(const TrackedSizes& operand, const TrackedSizes& sizes);
// The operand's source broadcast to `sizes`, without an effect.
ErrorSource broadcast_source(const ErrorSource& source, const TrackedSizes& operand,
                             const TrackedSizes& sizes);

// An operand while a result is computed from it. If another array still uses the operand's data,
// the data is read in place. Otherwise the result takes over its buffers.
class TrackedOperand {
 public:
  explicit TrackedOperand(Tracked of) : node_(of.node()) {}

  const TrackedNode& node() const { return *node_; }
  bool is_exact() const {
    return node_->sources.empty() && node_->worst.empty() && node_->systematic.empty();
  }
  // Must be called before element() and number(). `linear`: the result is a sum. Its roundings
  // hardly depend on the reach, so the worst errors are used for the reach if they are finite.
  void prepare(const TrackedSizes& sizes, bool linear = false);
  const BroadcastLines& lines() const { return lines_; }
  // kExact: is_exact() holds, so that loops do not read errors.
  template <bool kExact>
  UncertainElement element(std::size_t at) const {
    if constexpr (kExact) return {.at = centres_[at]};
    return {centres_[at], reach_[at], most_[at]};
  }
  double number(std::size_t at) const { return values_[at]; }
  OperandLine line(std::size_t at) const {
    if (is_exact()) return {.at = centres_ + at, .step = lines_.step};
    return {centres_ + at, reach_ + at, most_ + at, lines_.step};
  }

  // Propagates errors that have one sign in all elements of this operand to each element of the
  // result.
  void add_one_sided(const std::vector<double>& derivatives, TrackedNode& result) const;
  // The operand's sources multiplied by these derivatives, with the sizes of the result. The
  // operand is not usable afterwards.
  std::vector<ErrorSource> release_sources(const TrackedSizes& sizes,
                                           const std::vector<double>& derivatives);

 private:
  std::vector<double> passed_on(const std::vector<double>& effect,
                                const std::vector<double>& derivatives) const;

  std::shared_ptr<const TrackedNode> node_;
  BroadcastLines lines_;
  bool whole_ = true;  // true if each element is read once, in order
  std::vector<double> reaches_, none_;
  const double *centres_ = nullptr, *values_ = nullptr, *reach_ = nullptr, *most_ = nullptr;
};

// Completes a result. `own`: sigma of each element's own roundings. `beyond`: sigma of the part
// that is not linear in the errors.
Tracked finished(TrackedNode node, std::vector<double> own, std::vector<double> beyond);

// The elements of a result while they are computed.
template <ResultRounding kRounding>
class ResultElements {
 public:
  ResultElements(TrackedSizes sizes, std::shared_ptr<const Numerics> numerics, bool has_centres)
      : unit_(kRounding == ResultRounding::none       ? 0
              : kRounding == ResultRounding::function ? function_error(*numerics)
                                                      : kUnitF32) {
    const auto count = static_cast<std::size_t>(elements_of(sizes));
    node.sizes = std::move(sizes);
    node.numerics = std::move(numerics);
    node.values.resize(count);
    if (has_centres) node.centres.resize(count);
  }

  // `exact`: all operands are exact. `reach`: reach of the operands' errors in a correct kernel.
  [[gnu::always_inline]] void set_error(std::size_t i, const LocalChange& change, bool exact,
                                        double reach) {
    const double size = std::abs(change.value);
    double unit = unit_;
    // A function with an error of at most half an ulp is correctly rounded, so a result that fp32
    // holds has no error.
    if (kRounding != ResultRounding::none && exact && unit_ <= kUnitF32 && change.own == 0 &&
        static_cast<double>(static_cast<float>(change.value)) == change.value) {
      unit = 0;
    }
    if (kRounding == ResultRounding::function && change.is_scaled &&
        (size == 0 || size - change.most >= kLeastNormalF32)) {
      unit = 0;
    }
    if (own_.empty()) {
      if (change.most == 0 && unit == 0 && change.own == 0) return;
      allocate();
    }
    const double flushed =
        unit != 0 && size != 0 && size - change.most < kLeastNormalF32 ? kLeastNormalF32 : 0;
    if (change.beyond != 0 || !beyond_.empty()) set_beyond(i, change.beyond);
    node.worst[i] = change.most + scaled_error(size + change.most, unit) + flushed + change.own;
    own_[i] = kUniformSigma * (scaled_error(size + std::min(change.most, reach), unit) + flushed);
    if (change.own != 0) own_[i] = std::sqrt(square(own_[i]) + square(change.own_sigma));
  }
  // Error of the result if the function errs in the same direction in all elements.
  void add_one_sided() {
    if (kRounding != ResultRounding::function || own_.empty()) return;
    node.systematic.resize(node.values.size());
    for (std::size_t i = 0; i < node.values.size(); ++i) {
      const double size = std::abs(node.centre(i));
      if (size < kInfinity && own_[i] != 0) node.systematic[i] = unit_ * size;
    }
  }
  // Allocates the errors if all results were exact so far. Returns false if they are allocated
  // already.
  bool make_room() {
    if (!own_.empty()) return false;
    allocate();
    return true;
  }
  double* centres() { return node.centres.empty() ? node.values.data() : node.centres.data(); }
  // Pointers to the result from element i on. Allocates the errors if an operand has errors.
  ResultLine line(std::size_t i, bool bends) {
    const auto from = [i](std::vector<double>& of) { return of.empty() ? nullptr : &of[i]; };
    const bool exact = by_first.empty() && by_second.empty();
    if (!exact && own_.empty()) allocate();
    if (!by_first.empty() && !by_second.empty() && bends) beyond_.resize(node.values.size());
    return {from(node.centres.empty() ? node.values : node.centres),
            from(by_first),
            from(by_second),
            from(node.worst),
            from(own_),
            from(beyond_)};
  }
  Tracked finish(std::vector<ErrorSource> of_first, std::vector<ErrorSource> of_second) {
    node.sources = std::move(of_first);
    add_sources(std::move(of_second), node);
    return finished(std::move(node), std::move(own_), std::move(beyond_));
  }

  TrackedNode node;
  std::vector<double> by_first, by_second;  // derivatives; empty if the operand is exact

 private:
  // Exact results need no error arrays.
  [[gnu::noinline]] void allocate() {
    node.worst.resize(node.values.size());
    own_.resize(node.values.size());
  }
  [[gnu::noinline]] void set_beyond(std::size_t i, double sigma) {
    beyond_.resize(node.values.size());
    beyond_[i] = sigma;
  }

  double unit_;
  std::vector<double> own_, beyond_;
};
// Sets elements [i, end) of a result of two operands along one line. kFirst, kSecond: whether each
// operand is exact.
template <bool kFirst, bool kSecond, ResultRounding kRounding>
void set_elements(const TrackedOperand& a, std::size_t at, const TrackedOperand& b, std::size_t bt,
                  std::size_t i, std::size_t end, auto&& local, ResultElements<kRounding>& result) {
  const std::size_t step_a = a.lines().step, step_b = b.lines().step;
  double* const to = result.centres();
  for (; i < end; ++i, at += step_a, bt += step_b) {
    const UncertainElement x = a.element<kFirst>(at), y = b.element<kSecond>(bt);
    LocalChange change = local(x, y);
    to[i] = change.value;
    if (!(std::abs(change.value) < kInfinity)) change = {};  // non-finite: errors unknown
    if constexpr (!kFirst) result.by_first[i] = change.by_first;
    if constexpr (!kSecond) result.by_second[i] = change.by_second;
    result.set_error(i, change, x.is_exact() && y.is_exact(),
                     scaled_error(x.reach, std::abs(change.by_first)) +
                         scaled_error(y.reach, std::abs(change.by_second)));
  }
}

// Computes a result of two operands. `linear`: the result is a sum. value(a, b, i): the exact
// value. make(a, at, b, bt, i, end, result): sets the elements along a line.
template <ResultRounding kRounding>
Tracked of_two(Tracked first, Tracked second, const auto& value, const auto& make,
               bool linear = false) {
  const TrackedSizes sizes = broadcast_sizes(first.sizes(), second.sizes());
  check_alike(*first.node()->numerics, *second.node()->numerics);
  TrackedOperand a(std::move(first)), b(std::move(second));
  a.prepare(sizes, linear);
  b.prepare(sizes, linear);
  const bool has_centres = !a.node().centres.empty() || !b.node().centres.empty();
  ResultElements<kRounding> result(sizes, a.node().numerics, has_centres);
  if (!a.is_exact()) result.by_first.resize(result.node.values.size());
  if (!b.is_exact()) result.by_second.resize(result.node.values.size());
  std::size_t i = 0;
  for (std::size_t line = 0; line < a.lines().first.size(); ++line) {
    const std::size_t at = a.lines().first[line], bt = b.lines().first[line];
    const std::size_t end = i + a.lines().length;
    for (std::size_t j = 0; has_centres && i + j < end; ++j) {
      result.node.values[i + j] =
          value(a.number(at + j * a.lines().step), b.number(bt + j * b.lines().step), i + j);
    }
    make(a, at, b, bt, i, end, result);
    i = end;
  }
  result.add_one_sided();
  a.add_one_sided(result.by_first, result.node);
  b.add_one_sided(result.by_second, result.node);
  auto of_first = a.release_sources(sizes, result.by_first);
  return result.finish(std::move(of_first), b.release_sources(sizes, result.by_second));
}

// Calls set_elements for exact or inexact operands.
template <ResultRounding kRounding>
void set_any_elements(const TrackedOperand& a, std::size_t at, const TrackedOperand& b,
                      std::size_t bt, std::size_t i, std::size_t end, auto&& local,
                      ResultElements<kRounding>& result) {
  if (a.is_exact() && b.is_exact()) {
    set_elements<true, true>(a, at, b, bt, i, end, local, result);
  } else if (a.is_exact()) {
    set_elements<true, false>(a, at, b, bt, i, end, local, result);
  } else if (b.is_exact()) {
    set_elements<false, true>(a, at, b, bt, i, end, local, result);
  } else {
    set_elements<false, false>(a, at, b, bt, i, end, local, result);
  }
}

// Element-wise function of two operands. value(a, b) takes numbers; local(a, b) takes
// UncertainElements and returns a LocalChange.
template <ResultRounding kRounding>
Tracked elementwise(Tracked first, Tracked second, const auto& value, const auto& local) {
  return of_two<kRounding>(
      std::move(first), std::move(second),
      [&](double x, double y, std::size_t) { return value(x, y); },
      [&](const TrackedOperand& a, std::size_t at, const TrackedOperand& b, std::size_t bt,
          std::size_t i, std::size_t end, ResultElements<kRounding>& result) {
        set_any_elements(a, at, b, bt, i, end, local, result);
      });
}

// A sum or a product, four elements at a time. Blocks with an unusual element are computed one
// element at a time.
template <class Rule>
Tracked elementwise(Tracked first, Tracked second, Rule rule) {
  constexpr std::size_t kBlock = 256;
  const auto local = [](const UncertainElement& x, const UncertainElement& y) {
    LocalChange change;
    Rule::apply(x, y, change);
    return change;
  };
  return of_two<ResultRounding::fp32>(
      std::move(first), std::move(second),
      [](double x, double y, std::size_t) { return Rule::value(x, y); },
      [&](const TrackedOperand& a, std::size_t at, const TrackedOperand& b, std::size_t bt,
          std::size_t i, std::size_t end, ResultElements<ResultRounding::fp32>& result) {
        while (i < end) {
          const std::size_t fours = std::min(end - i, kBlock) / 4 * 4;
          const auto is_done = [&] {
            return set_ordinary(rule, a.line(at), b.line(bt), fours, result.line(i, Rule::kBends));
          };
          const bool done = fours > 0 && (is_done() || (result.make_room() && is_done()));
          const std::size_t count = fours > 0 ? fours : end - i;
          if (!done) set_any_elements(a, at, b, bt, i, i + count, local, result);
          i += count;
          at += count * a.lines().step;
          bt += count * b.lines().step;
        }
      },
      !Rule::kBends);
}

// Element-wise function of one operand: value(a), local(a).
template <ResultRounding kRounding>
Tracked elementwise(Tracked operand, const auto& value, const auto& local) {
  TrackedOperand a(std::move(operand));
  const TrackedSizes sizes = a.node().sizes;
  a.prepare(sizes);
  ResultElements<kRounding> result(sizes, a.node().numerics, !a.node().centres.empty());
  const bool has_centres = !a.node().centres.empty();
  const std::size_t count = result.node.values.size();
  double* const to = result.centres();
  if (!a.is_exact()) result.by_first.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const UncertainElement x = a.is_exact() ? a.element<true>(i) : a.element<false>(i);
    const LocalChange change = local(x);
    if (has_centres) result.node.values[i] = value(a.number(i));
    to[i] = change.value;
    if (!(std::abs(change.value) < kInfinity)) continue;
    if (!a.is_exact()) result.by_first[i] = change.by_first;
    result.set_error(i, change, x.is_exact(), scaled_error(x.reach, std::abs(change.by_first)));
  }
  result.add_one_sided();
  a.add_one_sided(result.by_first, result.node);
  return result.finish(a.release_sources(sizes, result.by_first), {});
}

// Largest change of a function whose operand changes by at most `by`. NaN outside the function's
// domain: no limit.
double move_of(const auto& value, double x, double y, double by) {
  if (by == 0) return 0;
  const double up = std::abs(value(x + by) - y), down = std::abs(value(x - by) - y);
  return std::isnan(up) || std::isnan(down) ? kInfinity : std::max(up, down);
}

// Change of a monotone function: between the ends of an interval its values are between those of
// the ends. The slope is the secant over the reach or the derivative, whichever is steeper.
// `moved`: computes the value of an operand with an error.
LocalChange monotone_change(const UncertainElement& x, const auto& value, const auto& derivative,
                            const auto& moved) {
  const double y = value(x.at), slope = derivative(x.at, y);
  const double most = move_of(moved, x.at, y, x.most);
  const double of_reach = x.reach == x.most ? most : move_of(moved, x.at, y, x.reach);
  const double over_reach = x.reach == 0 ? 0 : of_reach / x.reach;
  return {.value = y,
          .by_first = std::copysign(std::max(std::abs(slope), over_reach), slope),
          .most = most,
          .is_scaled = std::isinf(x.at)};  // the limit of the function, which is exact
}
Tracked monotone(Tracked a, const auto& value, const auto& derivative, const auto& moved) {
  return elementwise<ResultRounding::function>(std::move(a), value, [&](const UncertainElement& x) {
    return monotone_change(x, value, derivative, moved);
  });
}
Tracked monotone(Tracked a, const auto& value, const auto& derivative) {
  return monotone(std::move(a), value, derivative, value);
}

}  // namespace plumb::reference
