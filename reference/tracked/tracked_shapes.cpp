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

// Strides under other sizes. None where elements that share a source lie apart.
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
  // Groups of dimensions with the same number of elements, before and after.
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

// Sources of elements that share them in an order without a rule. Those of up to 16 numbers stay,
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
  TrackedNode node = std::move(a).release();
  const TrackedSplit split = split_at(node.sizes, dimension);
  if (first < 0 || count < 0 || first + count > split.size) {
    throw std::invalid_argument("sliced: outside of the dimension");
  }
  std::vector<std::size_t> from;
  for (std::int64_t outer = 0; outer < split.outer; ++outer) {
    for (std::int64_t k = first; k < first + count; ++k) {
      for (std::int64_t inner = 0; inner < split.inner; ++inner) {
        from.push_back(static_cast<std::size_t>((outer * split.size + k) * split.inner + inner));
      }
    }
  }
  TrackedSizes sizes = node.sizes;
  sizes[dimension] = count;
  for (ErrorSource& source : node.sources) source.base += first * source.strides[dimension];
  return picked(std::move(node), std::move(sizes), from);
}

namespace {

// The sizes of the whole. Throws std::invalid_argument for parts that do not fit.
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

// Is the source of a single element also that of all elements of another part?
bool is_shared_with(const ErrorSource& source, const std::vector<Tracked>& parts,
                    std::size_t dimension) {
  return std::ranges::any_of(parts, [&](const Tracked& part) {
    return std::ranges::any_of(part.node()->sources, [&](const ErrorSource& other) {
      return other.identity == source.identity && !other.varies(dimension);
    });
  });
}

// A source of a part, at its places in the whole: elements `to`, from `first` on along the
// dimension.
ErrorSource placed(const ErrorSource& source, bool shared, std::size_t count, std::size_t dimension,
                   std::int64_t first, const std::vector<std::size_t>& to) {
  ErrorSource there{source.identity, source.base, source.strides, std::vector<double>(count)};
  if (shared) there.strides[dimension] = 0;
  there.base -= first * there.strides[dimension];
  for (std::size_t i = 0; i < to.size(); ++i) there.effect[to[i]] = source.effect[i];
  return there;
}

// What parts have, and what those have that lack it.
void place(const std::vector<double>& from, const std::vector<double>* otherwise,
           const std::vector<std::size_t>& to, std::vector<double>& whole) {
  if (whole.empty()) return;
  for (std::size_t i = 0; i < to.size(); ++i) {
    whole[to[i]] = !from.empty() ? from[i] : otherwise != nullptr ? (*otherwise)[i] : 0;
  }
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
    std::vector<std::size_t> to;
    for (std::int64_t outer = 0; outer < split.outer; ++outer) {
      for (std::int64_t k = 0; k < split.size * split.inner; ++k) {
        to.push_back(static_cast<std::size_t>((outer * whole.size + first) * whole.inner + k));
      }
    }
    place(from.values, nullptr, to, node.values);
    place(from.centres, &from.values, to, node.centres);
    place(from.worst, nullptr, to, node.worst);
    place(from.systematic, nullptr, to, node.systematic);
    std::vector<ErrorSource> sources;
    for (const ErrorSource& source : from.sources) {
      const bool shared = split.size == 1 && is_shared_with(source, parts, dimension);
      sources.push_back(placed(source, shared, count, dimension, first, to));
    }
    add_sources(std::move(sources), node);
    first += split.size;
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

}  // namespace plumb::reference
