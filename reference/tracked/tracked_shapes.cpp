// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "reference/tracked/elementwise.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Strides of the source for other sizes. nullopt if no strides can express them.
std::optional<decltype(ErrorSource::strides)> reshaped_strides(const ErrorSource& source,
                                                               const TrackedSizes& from,
                                                               const TrackedSizes& to) {
  decltype(ErrorSource::strides) strides{};
  const auto larger = [](const TrackedSizes& sizes) {
    std::vector<std::size_t> dimensions;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] != 1) dimensions.push_back(d);
    }
    return dimensions;
  };
  const auto old_places = larger(from), new_places = larger(to);
  // Compares groups of dimensions that have the same number of elements before and after.
  for (std::size_t o = 0, n = 0; o < old_places.size();) {
    std::int64_t old_count = from[old_places[o]], new_count = to[new_places[n]];
    std::size_t last_old = o, last_new = n;
    while (old_count != new_count) {
      if (old_count < new_count) {
        old_count *= from[old_places[++last_old]];
      } else {
        new_count *= to[new_places[++last_new]];
      }
    }
    for (; o < last_old; ++o) {
      const std::size_t next = old_places[o + 1];
      if (source.strides[old_places[o]] != from[next] * source.strides[next]) return std::nullopt;
    }
    std::int64_t stride = source.strides[old_places[last_old]];
    for (std::size_t d = last_new + 1; d-- > n;) {
      strides[new_places[d]] = stride;
      stride *= to[new_places[d]];
    }
    o = last_old + 1;
    n = last_new + 1;
  }
  return strides;
}

// Sources of elements that share them in an irregular order. Up to 16 different sources are kept;
// more become random mixes.
std::vector<ErrorSource> shared_by_number(const ErrorSource& source,
                                          const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t kMost = 16;
  constexpr double kMarginOfMixes = 1.25;
  std::map<std::int64_t, std::size_t> places;
  for (const std::int64_t number : numbers) places.try_emplace(number, places.size());
  const bool mixed = places.size() > kMost;
  std::vector<ErrorSource> parts(std::min(places.size(), kMost));
  for (ErrorSource& part : parts) {
    part.identity = mixed ? new_source() : source.identity;
    part.effect.resize(numbers.size());
  }
  for (const auto& [number, place] : places) {
    if (!mixed) parts[place].base = number;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!mixed) parts[places[numbers[i]]].effect[i] = source.effect[i];
    for (std::size_t j = 0; mixed && j < parts.size(); ++j) {
      parts[j].effect[i] = source.effect[i] * kMarginOfMixes / std::sqrt(double{kMost}) *
                           sign_by_chance(static_cast<std::uint64_t>(numbers[i]), j);
    }
  }
  return parts;
}

}  // namespace

std::vector<std::int64_t> numbers_of(const ErrorSource& source, const TrackedSizes& sizes) {
  std::vector<std::int64_t> numbers{source.base};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    std::vector<std::int64_t> more;
    for (const std::int64_t number : numbers) {
      for (std::int64_t i = 0; i < sizes[d]; ++i) more.push_back(number + i * source.strides[d]);
    }
    numbers = std::move(more);
  }
  return numbers;
}

Tracked picked(TrackedNode node, TrackedSizes sizes, const std::vector<std::size_t>& from) {
  const auto pick = [&](std::vector<double>& values) {
    if (values.empty()) return;
    std::vector<double> some;
    some.reserve(from.size());
    for (const std::size_t i : from) some.push_back(values[i]);
    values = std::move(some);
  };
  node.sizes = std::move(sizes);
  pick(node.values);
  pick(node.centres);
  pick(node.worst);
  pick(node.systematic);
  for (ErrorSource& source : node.sources) pick(source.effect);
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

Tracked reshaped(Tracked a, TrackedSizes sizes) {
  check_sizes(sizes);
  TrackedNode node = std::move(a).release();
  const std::int64_t count = elements_of(sizes);
  if (count != elements_of(node.sizes)) {
    throw std::invalid_argument("reshaped: another number of elements");
  }
  std::vector<ErrorSource> sources = std::move(node.sources);
  const TrackedSizes from = std::exchange(node.sizes, std::move(sizes));
  node.sources.clear();
  for (ErrorSource& source : sources) {
    if (count == 0) continue;
    if (const auto strides = reshaped_strides(source, from, node.sizes)) {
      source.strides = *strides;
      node.sources.push_back(std::move(source));
    } else {
      add_sources(shared_by_number(source, numbers_of(source, from)), node);
    }
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

Tracked broadcast_to(Tracked a, const TrackedSizes& sizes) {
  if (a.sizes() == sizes) return a;
  if (broadcast_sizes(a.sizes(), sizes) != sizes) {
    throw std::invalid_argument("broadcast_to: an array that is larger");
  }
  TrackedNode node = std::move(a).release();
  const BroadcastLines lines = broadcast_lines(node.sizes, sizes);
  std::vector<std::size_t> from;
  for (const std::size_t first : lines.first) {
    for (std::size_t j = 0; j < lines.length; ++j) from.push_back(first + j * lines.step);
  }
  for (ErrorSource& source : node.sources) {
    source.strides = broadcast_source(source, node.sizes, sizes).strides;
  }
  return picked(std::move(node), sizes, from);
}

Tracked sliced(Tracked a, std::size_t dimension, std::int64_t first, std::int64_t count) {
  const TrackedNode& from = *a.node();
  const TrackedSplit split = split_at(from.sizes, dimension);
  if (first < 0 || count < 0 || first + count > split.size) {
    throw std::invalid_argument("sliced: outside of the dimension");
  }
  const auto cut = [&](const std::vector<double>& whole) {
    std::vector<double> part;
    if (whole.empty()) return part;
    part.reserve(static_cast<std::size_t>(split.outer * count * split.inner));
    for (std::int64_t outer = 0; outer < split.outer; ++outer) {
      const auto begin = whole.begin() + (outer * split.size + first) * split.inner;
      part.insert(part.end(), begin, begin + count * split.inner);
    }
    return part;
  };
  TrackedNode node{from.sizes,        from.numerics,   cut(from.values),
                   cut(from.centres), cut(from.worst), cut(from.systematic)};
  node.sizes[dimension] = count;
  for (const ErrorSource& source : from.sources) {
    node.sources.push_back({source.identity, source.base + first * source.strides[dimension],
                            source.strides, cut(source.effect)});
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

namespace {

// Sizes of the joined array. Throws std::invalid_argument for parts that do not fit.
TrackedSizes joined_sizes(const std::vector<Tracked>& parts, std::size_t dimension) {
  if (parts.empty()) throw std::invalid_argument("joined: no array");
  TrackedSizes sizes = parts.front().sizes();
  split_at(sizes, dimension);
  sizes[dimension] = 0;
  for (const Tracked& part : parts) {
    TrackedSizes other = part.sizes();
    if (other.size() != sizes.size()) throw std::invalid_argument("joined: other dimensions");
    const std::int64_t so_far =
        sizes[dimension] + std::exchange(other[dimension], sizes[dimension]);
    if (other != sizes) throw std::invalid_argument("joined: other sizes");
    sizes[dimension] = so_far;
    check_alike(*part.node()->numerics, *parts.front().node()->numerics);
  }
  return sizes;
}

// True if a part has a source of this family that all of its elements along the dimension share.
bool is_shared_with(const ErrorSource& source, const std::vector<Tracked>& parts,
                    std::size_t dimension) {
  return std::ranges::any_of(parts, [&](const Tracked& part) {
    return std::ranges::any_of(part.node()->sources, [&](const ErrorSource& other) {
      return other.identity == source.identity && !other.varies(dimension);
    });
  });
}

// Where a part's elements are in the joined array: runs of `length` elements, each `step` after the
// one before.
struct PartPlaces {
  std::int64_t first = 0, length = 0, step = 0;

  // Copies the numbers `from` of a part. Does nothing if `from` is empty.
  void place(const std::vector<double>& from, std::vector<double>& whole) const {
    std::int64_t to = first;
    for (auto run = from.begin(); run != from.end(); run += length, to += step) {
      std::copy(run, run + length, whole.begin() + to);
    }
  }
};

// A source of a part as a source of the joined array. The part begins at `first` along the
// dimension.
ErrorSource placed(const ErrorSource& source, bool shared, std::size_t count, std::size_t dimension,
                   std::int64_t first, const PartPlaces& places) {
  ErrorSource there{source.identity, source.base, source.strides, std::vector<double>(count)};
  if (shared) there.strides[dimension] = 0;
  there.base -= first * there.strides[dimension];
  places.place(source.effect, there.effect);
  return there;
}

}  // namespace

Tracked joined(const std::vector<Tracked>& parts, std::size_t dimension) {
  const TrackedSizes sizes = joined_sizes(parts, dimension);
  const auto count = static_cast<std::size_t>(elements_of(sizes));
  TrackedNode node{sizes, parts.front().node()->numerics, std::vector<double>(count)};
  for (const Tracked& part : parts) {
    if (!part.node()->centres.empty()) node.centres.resize(count);
    if (!part.node()->worst.empty()) node.worst.resize(count);
    if (!part.node()->systematic.empty()) node.systematic.resize(count);
  }
  const TrackedSplit whole = split_at(sizes, dimension);
  std::int64_t first = 0;
  for (const Tracked& part : parts) {
    const TrackedNode& from = *part.node();
    const TrackedSplit split = split_at(from.sizes, dimension);
    const PartPlaces places{first * whole.inner, split.size * split.inner,
                            whole.size * whole.inner};
    places.place(from.values, node.values);
    if (!node.centres.empty()) places.place(part.centres(), node.centres);
    places.place(from.worst, node.worst);
    places.place(from.systematic, node.systematic);
    std::vector<ErrorSource> sources;
    for (const ErrorSource& source : from.sources) {
      const bool shared = split.size == 1 && is_shared_with(source, parts, dimension);
      sources.push_back(placed(source, shared, count, dimension, first, places));
    }
    add_sources(std::move(sources), node);
    first += split.size;
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

}  // namespace plumb::reference
