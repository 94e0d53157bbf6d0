// SPDX-License-Identifier: Apache-2.0
//
// How a function of one or two arrays passes errors on: by slopes over what honest errors reach,
// and at most by what the function says itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

// An operand's element: its centre, how far honest errors reach, and how far any error can.
struct UncertainElement {
  double at = 0, reach = 0, most = 0;

  bool is_exact() const { return most == 0; }
};

// A result's element. `beyond`: one standard deviation of what is not linear in the errors.
struct LocalChange {
  double value = 0, by_first = 0, by_second = 0, most = 0, beyond = 0;
};

enum class ResultRounding { none, fp32, function };

// Throws std::invalid_argument for sizes that do not broadcast.
TrackedSizes broadcast_sizes(const TrackedSizes& a, const TrackedSizes& b);
// Where an operand is read for elements of the result: for those of line l (along the last
// dimension) at first[l], and then every `step`, which is 0 or 1.
struct BroadcastLines {
  std::vector<std::size_t> first;
  std::size_t step = 1, length = 1;
};
BroadcastLines broadcast_lines(const TrackedSizes& operand, const TrackedSizes& sizes);
// The operand's dimensions that stay its own among `sizes`, as bits of those.
std::uint32_t broadcast_dimensions(std::uint32_t varies, const TrackedSizes& operand,
                                   const TrackedSizes& sizes);
// Sources of an operand, as the result has them with these derivatives.
std::vector<ErrorSource> broadcast_sources(TrackedNode& operand, const BroadcastLines& lines,
                                           const TrackedSizes& sizes,
                                           const std::vector<double>& derivatives);

inline double at_or_none(const std::vector<double>& values, std::size_t i) {
  return values.empty() ? 0 : values[i];
}

// 0 where there is no error, also if it would be multiplied by infinity.
inline double scaled(double error, double by) { return error == 0 || by == 0 ? 0 : error * by; }

// The elements of a result while they are computed.
class ResultElements {
 public:
  ResultElements(TrackedSizes sizes, std::shared_ptr<const Numerics> numerics, int operands,
                 bool has_centres, ResultRounding rounding);

  // `value`: without any rounding, used if there are centres. `exact`: the operands are. `reach`:
  // of honest errors of the operands. `one_sided`: what errors of one sign make of it.
  void set(std::size_t i, const LocalChange& change, double value, bool exact, double reach,
           double one_sided) {
    TrackedNode& to = node;
    to.values[i] = to.centres.empty() ? change.value : value;
    if (!to.centres.empty()) to.centres[i] = change.value;
    if (!std::isfinite(change.value)) return;  // nothing is known of errors there
    const double size = std::abs(change.value);
    double unit = rounding_ == ResultRounding::none ? 0 : unit_;
    if (rounding_ == ResultRounding::fp32 && exact &&
        static_cast<double>(static_cast<float>(change.value)) == change.value) {
      unit = 0;
    }
    const double flushed =
        unit != 0 && size != 0 && size - change.most < kLeastNormalF32 ? kLeastNormalF32 : 0;
    by_first[i] = change.by_first;
    if (!by_second.empty()) by_second[i] = change.by_second;
    if (change.beyond != 0) set_beyond(i, change.beyond);
    to.worst[i] = change.most + scaled(size + change.most, unit) + flushed;
    own_[i] = kUniformSigma * (scaled(size + std::min(change.most, reach), unit) + flushed);
    const double bent = one_sided + (rounding_ == ResultRounding::function ? unit * size : 0);
    if (bent != 0) set_systematic(i, bent);
  }
  Tracked finish(std::vector<ErrorSource> of_first, std::vector<ErrorSource> of_second);

  TrackedNode node;
  std::vector<double> by_first, by_second;

 private:
  // Few results have any.
  void set_beyond(std::size_t i, double sigma) {
    beyond_.resize(node.values.size());
    beyond_[i] = sigma;
  }
  void set_systematic(std::size_t i, double mean) {
    node.systematic.resize(node.values.size());
    node.systematic[i] = mean;
  }

  ResultRounding rounding_;
  double unit_;
  std::vector<double> own_, beyond_;
};

// value(a, b) of numbers; local(a, b) of UncertainElements -> LocalChange.
Tracked elementwise(Tracked first, Tracked second, ResultRounding rounding, const auto& value,
                    const auto& local) {
  const TrackedSizes sizes = broadcast_sizes(first.sizes(), second.sizes());
  check_alike(*first.node()->numerics, *second.node()->numerics);
  TrackedNode a = std::move(first).release(), b = std::move(second).release();
  const BroadcastLines of_a = broadcast_lines(a.sizes, sizes);
  const BroadcastLines of_b = broadcast_lines(b.sizes, sizes);
  const bool has_centres = !a.centres.empty() || !b.centres.empty();
  const std::vector<double> reach_a = a.reaches(), reach_b = b.reaches();
  ResultElements result(sizes, a.numerics, 2, has_centres, rounding);
  std::size_t i = 0;
  for (std::size_t line = 0; line < of_a.first.size(); ++line) {
    std::size_t at = of_a.first[line], bt = of_b.first[line];
    for (std::size_t j = 0; j < of_a.length; ++j, ++i, at += of_a.step, bt += of_b.step) {
      const UncertainElement x{a.centre(at), at_or_none(reach_a, at), a.most(at)};
      const UncertainElement y{b.centre(bt), at_or_none(reach_b, bt), b.most(bt)};
      const LocalChange change = local(x, y);
      const double slope_x = std::abs(change.by_first), slope_y = std::abs(change.by_second);
      result.set(i, change, has_centres ? value(a.values[at], b.values[bt]) : 0,
                 x.is_exact() && y.is_exact(), scaled(x.reach, slope_x) + scaled(y.reach, slope_y),
                 scaled(a.one_sided(at), slope_x) + scaled(b.one_sided(bt), slope_y));
    }
  }
  auto sources_of_a = broadcast_sources(a, of_a, sizes, result.by_first);
  a.sources.clear();
  auto sources_of_b = broadcast_sources(b, of_b, sizes, result.by_second);
  b.sources.clear();
  return result.finish(std::move(sources_of_a), std::move(sources_of_b));
}

// The same of one operand: value(a); local(a).
Tracked elementwise(Tracked operand, ResultRounding rounding, const auto& value,
                    const auto& local) {
  TrackedNode a = std::move(operand).release();
  const std::vector<double> reach = a.reaches();
  ResultElements result(a.sizes, a.numerics, 1, !a.centres.empty(), rounding);
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const UncertainElement x{a.centre(i), at_or_none(reach, i), a.most(i)};
    const LocalChange change = local(x);
    const double slope = std::abs(change.by_first);
    result.set(i, change, a.centres.empty() ? 0 : value(a.values[i]), x.is_exact(),
               scaled(x.reach, slope), scaled(a.one_sided(i), slope));
  }
  auto sources = broadcast_sources(a, broadcast_lines(a.sizes, a.sizes), a.sizes, result.by_first);
  a.sources.clear();
  return result.finish(std::move(sources), {});
}

}  // namespace plumb::reference
