// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "reference/tracked/elementwise.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// The elements `from` of an array, under other sizes.
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

// Which elements share a source is known for all of a dimension, or for none of it: where they do,
// only dimensions of size 1 may come and go.
std::uint32_t reshaped_dimensions(std::uint32_t varies, const TrackedSizes& from,
                                  const TrackedSizes& to) {
  const std::uint32_t all = all_dimensions(to);
  if (varies == all_dimensions(from)) return all;
  const auto larger = [](const TrackedSizes& sizes) {
    std::vector<std::size_t> dimensions;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] != 1) dimensions.push_back(d);
    }
    return dimensions;
  };
  const auto old_places = larger(from), new_places = larger(to);
  const auto size_in = [](const TrackedSizes& sizes) {
    return [&sizes](std::size_t d) { return sizes[d]; };
  };
  if (!std::ranges::equal(old_places, new_places, {}, size_in(from), size_in(to))) {
    throw std::invalid_argument("reshaped: elements share errors along a dimension");
  }
  std::uint32_t bits = all;
  for (std::size_t i = 0; i < old_places.size(); ++i) {
    if (((varies >> old_places[i]) & 1) == 0) bits &= ~(std::uint32_t{1} << new_places[i]);
  }
  return bits;
}

}  // namespace

Tracked reshaped(Tracked a, TrackedSizes sizes) {
  check_sizes(sizes);
  TrackedNode node = std::move(a).release();
  if (elements_of(sizes) != elements_of(node.sizes)) {
    throw std::invalid_argument("reshaped: another number of elements");
  }
  for (ErrorSource& source : node.sources) {
    source.varies = reshaped_dimensions(source.varies, node.sizes, sizes);
  }
  node.sizes = std::move(sizes);
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
    source.varies = broadcast_dimensions(source.varies, node.sizes, sizes);
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
  // Other elements of the dimension stand at these places now.
  const std::uint32_t bit = std::uint32_t{1} << dimension;
  for (ErrorSource& source : node.sources) {
    if ((source.varies & bit) == 0 || count == split.size) continue;
    source.identity =
        source.identity->moved({static_cast<std::int64_t>(dimension), first, count, 0});
  }
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

// A source of a part, at its places in the whole: elements `to`, from `first` on along the
// dimension.
ErrorSource placed(ErrorSource source, const TrackedSizes& part, const TrackedSizes& whole,
                   std::size_t dimension, std::int64_t first, const std::vector<std::size_t>& to) {
  const std::uint32_t bit = std::uint32_t{1} << dimension;
  if (part[dimension] == 1) {
    source.varies &= ~bit;  // no other element of the dimension has it
  } else if ((source.varies & bit) != 0) {
    source.identity = source.identity->moved(
        {static_cast<std::int64_t>(dimension), first, part[dimension], whole[dimension]});
  }
  std::vector<double> effect(static_cast<std::size_t>(elements_of(whole)));
  for (std::size_t i = 0; i < to.size(); ++i) effect[to[i]] = source.effect[i];
  source.effect = std::move(effect);
  return source;
}

}  // namespace

Tracked joined(const std::vector<Tracked>& parts, std::size_t dimension) {
  const TrackedSizes sizes = joined_sizes(parts, dimension);
  const auto count = static_cast<std::size_t>(elements_of(sizes));
  TrackedNode node{sizes, parts.front().node()->numerics, std::vector<double>(count)};
  node.centres.resize(count);
  node.worst.resize(count);
  node.systematic.resize(count);
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
    for (std::size_t i = 0; i < to.size(); ++i) {
      node.values[to[i]] = from.values[i];
      node.centres[to[i]] = from.centre(i);
      node.worst[to[i]] = from.most(i);
      node.systematic[to[i]] = from.one_sided(i);
    }
    std::vector<ErrorSource> sources;
    for (const ErrorSource& source : from.sources) {
      sources.push_back(placed(source, from.sizes, sizes, dimension, first, to));
    }
    add_sources(std::move(sources), node);
    first += split.size;
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

}  // namespace plumb::reference
