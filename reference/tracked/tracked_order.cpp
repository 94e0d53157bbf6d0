// SPDX-License-Identifier: Apache-2.0
//
// The largest element of a line, the n-th largest, and clamping. Errors may change which element is
// selected, and errors end at a limit of clamp.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

std::int64_t lines_of(const TrackedSplit& split) { return split.outer * split.inner; }
std::size_t first_of(const TrackedSplit& split, std::int64_t line) {
  const std::int64_t outer = line / split.inner, inner = line % split.inner;
  return static_cast<std::size_t>(outer * split.size * split.inner + inner);
}

// The n-th element of a line in descending order, and how far errors move the n-th largest value.
// If any element rises, that value rises or stays. So it is farthest off if all errors have one
// sign.
struct NthElement {
  std::size_t at = 0;
  double most = 0, beyond = 0;
};

class OrderedLines {
 public:
  OrderedLines(const TrackedNode& node, const TrackedSplit& split, std::int64_t n)
      : node_(node),
        split_(split),
        n_(static_cast<std::size_t>(n)),
        reaches_(node.reaches()),
        reach_worst_(reaches_ == node.worst) {}

  NthElement find(std::int64_t line) {
    NthElement nth{nth_moved(line, nullptr, 0).second};
    if (node_.worst.empty() || !std::isfinite(node_.centre(nth.at))) return nth;
    nth.most = move(line, nth.at, node_.worst);
    if (!reaches_.empty()) {
      const double reach = reach_worst_ ? nth.most : move(line, nth.at, reaches_);
      nth.beyond = std::max(0.0, reach - reaches_[nth.at]) / 6;
    }
    return nth;
  }

 private:
  using Place = std::pair<double, std::size_t>;  // a number and the index of its element

  double move(std::int64_t line, std::size_t at, const std::vector<double>& errors) {
    const double centre = node_.centre(at);
    return std::max(nth_moved(line, &errors, 1).first - centre,
                    centre - nth_moved(line, &errors, -1).first);
  }
  // The n-th largest of a line (from 0) after all elements are moved by sign * errors. NaN comes
  // after all numbers.
  Place nth_moved(std::int64_t line, const std::vector<double>* errors, double sign) {
    largest_.clear();
    const auto step = static_cast<std::size_t>(split_.inner);
    const std::size_t first = first_of(split_, line);
    const std::size_t end = first + step * static_cast<std::size_t>(split_.size);
    for (std::size_t i = first; i < end; i += step) {
      const double x = node_.centre(i) + (errors != nullptr ? sign * (*errors)[i] : 0);
      const auto is_larger = [x](const Place& place) {
        return x > place.first || std::isnan(place.first);
      };
      if (largest_.size() > n_) {
        if (!is_larger(largest_.back())) continue;
        largest_.pop_back();
      }
      largest_.insert(std::ranges::find_if(largest_, is_larger), {x, i});
    }
    return largest_.back();
  }

  const TrackedNode& node_;
  TrackedSplit split_;
  std::size_t n_;
  std::vector<double> reaches_;
  bool reach_worst_;  // the reach is equal to the worst errors
  std::vector<Place> largest_;
};

// Adds the error sources of the picked elements to the result. Sources that a whole line shares
// stay. Others are joined into one source of the result.
void add_picked(std::vector<ErrorSource> sources, std::size_t dimension, std::vector<double> beyond,
                TrackedNode& node) {
  for (ErrorSource& source : sources) {
    if (!source.varies(dimension)) {
      node.sources.push_back(std::move(source));
    } else {
      add_source(std::move(source.effect), false, node);
    }
  }
  add_source(std::move(beyond), false, node);
  join_own_sources(node);
}

Tracked max_of_exact(const TrackedNode& node, std::size_t dimension, const TrackedSplit& split) {
  TrackedNode largest{node.sizes, node.numerics, {}};
  largest.sizes[dimension] = 1;
  for (std::int64_t line = 0; line < lines_of(split); ++line) {
    const std::size_t first = first_of(split, line);
    double most = node.values[first];
    for (std::int64_t k = 1; k < split.size; ++k) {
      const double x = node.values[first + static_cast<std::size_t>(k * split.inner)];
      most = most >= x || std::isnan(most) ? most : x;
    }
    largest.values.push_back(most);
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(largest)));
}

}  // namespace

// Unless the array is exact, computed as max of two halves, recursively, so that the error rule of
// the max of two operands applies.
Tracked max(Tracked a, std::size_t dimension) {
  const TrackedNode& node = *a.node();
  const TrackedSplit split = split_at(node.sizes, dimension);
  const std::int64_t size = split.size;
  if (size == 0) throw std::invalid_argument("max: of no element");
  if (size == 1) return a;
  if (node.centres.empty() && node.worst.empty() && node.sources.empty()) {
    return max_of_exact(node, dimension, split);
  }
  Tracked lower = sliced(a, dimension, 0, size / 2);
  Tracked upper = sliced(a, dimension, size / 2, size - size / 2);
  return max(max(std::move(lower), dimension), max(std::move(upper), dimension));
}

Tracked nth_largest(Tracked a, std::size_t dimension, std::int64_t n) {
  TrackedNode node = std::move(a).release();
  const TrackedSplit split = split_at(node.sizes, dimension);
  if (n < 0 || n >= split.size) throw std::invalid_argument("nth_largest: no such element");
  OrderedLines lines(node, split, n);
  std::vector<std::size_t> from;
  std::vector<double> most, beyond;
  for (std::int64_t line = 0; line < lines_of(split); ++line) {
    const NthElement found = lines.find(line);
    from.push_back(found.at);
    most.push_back(found.most);
    beyond.push_back(found.beyond);
  }
  TrackedSizes sizes = node.sizes;
  sizes[dimension] = 1;
  TrackedNode nth = picked(std::move(node), std::move(sizes), from).release();
  if (!nth.worst.empty()) nth.worst = std::move(most);
  add_picked(std::exchange(nth.sources, {}), dimension, std::move(beyond), nth);
  return Tracked(std::make_shared<TrackedNode>(std::move(nth)));
}

// Most elements are far from the limits. An error that crosses a limit is not linear.
Tracked clamp(Tracked a, double least, double most) {
  const auto value = [=](double x) { return x < least ? least : x > most ? most : x; };
  TrackedNode node = std::move(a).release();
  std::vector<double> beyond(node.values.size());
  for (std::size_t i = 0; i < node.values.size(); ++i) {
    const double centre = node.centre(i), error = node.most(i), y = value(centre);
    node.values[i] = value(node.values[i]);
    if (centre - error >= least && centre + error <= most) continue;
    const double moved =
        error == 0 ? 0 : std::max(value(centre + error) - y, y - value(centre - error));
    const bool follows = moved > 0 && node.variance(i) < kInfinity;
    beyond[i] = follows ? 0 : moved;
    if (!node.centres.empty()) node.centres[i] = y;
    if (!node.worst.empty()) node.worst[i] = moved;
    if (follows) continue;
    for (ErrorSource& source : node.sources) source.effect[i] = 0;
    if (!node.systematic.empty()) node.systematic[i] = 0;
  }
  add_source(std::move(beyond), true, node);
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

}  // namespace plumb::reference
