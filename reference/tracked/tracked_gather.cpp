// SPDX-License-Identifier: Apache-2.0
//
// Picks rows of an array by index. Two copies of a row have the same errors.
#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// True for indices with a constant step: a slice, or one row repeated.
bool have_a_step(const std::vector<std::int64_t>& indices) {
  for (std::size_t i = 2; i < indices.size(); ++i) {
    if (indices[i] - indices[i - 1] != indices[1] - indices[0]) return false;
  }
  return true;
}

// The gathered source restricted to some places along the dimension. Other effects are 0.
ErrorSource at_places(const ErrorSource& gathered, const TrackedSplit& split,
                      const auto& is_there) {
  ErrorSource some{gathered.identity, gathered.base, gathered.strides,
                   std::vector<double>(gathered.effect.size())};
  for (std::size_t i = 0; i < some.effect.size(); ++i) {
    const std::int64_t place = static_cast<std::int64_t>(i) / split.inner % split.size;
    if (is_there(static_cast<std::size_t>(place))) some.effect[i] = gathered.effect[i];
  }
  return some;
}

bool has_effect(const ErrorSource& source) {
  return std::ranges::any_of(source.effect, [](double e) { return e != 0; });
}

// Sources of rows that were picked without a constant step. In small arrays with few rows, each row
// keeps its sources. In larger ones, rows that are picked once get one derived family of sources
// together. Up to 16 repeated rows keep their sources; more become random mixes.
std::vector<ErrorSource> gathered_without_rule(const ErrorSource& source, const TrackedSizes& sizes,
                                               std::size_t dimension,
                                               const std::vector<std::int64_t>& indices) {
  constexpr std::size_t kMostRows = 16;
  constexpr double kMarginOfRows = 1.25;
  const TrackedSplit split = split_at(sizes, dimension);
  std::map<std::int64_t, int> times;
  for (const std::int64_t index : indices) ++times[index];
  constexpr std::size_t kSmall = std::size_t{1} << 14;
  const int kept_apart = times.size() <= kMostRows && source.effect.size() <= kSmall ? 1 : 2;

  SourceName::Pick pick{source.base, static_cast<std::int64_t>(dimension)};
  pick.insert(pick.end(), source.strides.begin(), source.strides.end());
  pick.insert(pick.end(), sizes.begin(), sizes.end());
  pick.insert(pick.end(), indices.begin(), indices.end());
  std::vector<ErrorSource> parts;
  const bool all_once = kept_apart > 1 && times.size() == indices.size();
  ErrorSource once = all_once ? source : at_places(source, split, [&](std::size_t place) {
    return times[indices[place]] < kept_apart;
  });
  once = new_source_like(source, sizes, std::move(once.effect));
  once.identity = source.identity->picked(pick);
  if (has_effect(once)) parts.push_back(std::move(once));
  if (all_once) return parts;

  std::vector<ErrorSource> repeated;
  for (const auto& [row, count] : times) {
    if (count < kept_apart) continue;
    ErrorSource one =
        at_places(source, split, [&](std::size_t place) { return indices[place] == row; });
    one.base += row * source.strides[dimension];
    one.strides[dimension] = 0;
    if (has_effect(one)) repeated.push_back(std::move(one));
    if (repeated.size() > kMostRows) break;
  }
  if (repeated.size() <= kMostRows) {
    for (ErrorSource& one : repeated) parts.push_back(std::move(one));
    return parts;
  }
  ErrorSource like{nullptr, 0, source.strides, {}};
  like.strides[dimension] = 0;
  for (std::size_t j = 0; j < kMostRows; ++j) {
    ErrorSource mix = at_places(
        source, split, [&](std::size_t place) { return times[indices[place]] >= kept_apart; });
    for (std::size_t i = 0; i < mix.effect.size(); ++i) {
      const std::int64_t place = static_cast<std::int64_t>(i) / split.inner % split.size;
      mix.effect[i] *=
          kMarginOfRows / std::sqrt(double{kMostRows}) *
          sign_by_chance(static_cast<std::uint64_t>(indices[static_cast<std::size_t>(place)]), j);
    }
    SourceName::Pick of_mix = pick;
    of_mix.push_back(static_cast<std::int64_t>(j));
    ErrorSource part = new_source_like(like, sizes, std::move(mix.effect));
    part.identity = source.identity->picked(of_mix);
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

Tracked gather(Tracked a, std::size_t dimension, const std::vector<std::int64_t>& indices) {
  const TrackedSplit split = split_at(a.sizes(), dimension);
  std::vector<std::size_t> from;
  for (std::int64_t outer = 0; outer < split.outer; ++outer) {
    for (const std::int64_t index : indices) {
      if (index < 0 || index >= split.size) {
        throw std::invalid_argument("gather: an index outside of the dimension");
      }
      for (std::int64_t inner = 0; inner < split.inner; ++inner) {
        from.push_back(
            static_cast<std::size_t>((outer * split.size + index) * split.inner + inner));
      }
    }
  }
  TrackedSizes sizes = a.sizes();
  sizes[dimension] = static_cast<std::int64_t>(indices.size());
  TrackedNode node = picked(std::move(a).release(), sizes, from).release();
  std::vector<ErrorSource> sources = std::move(node.sources);
  node.sources.clear();
  for (ErrorSource& source : sources) {
    if (!source.varies(dimension) || indices.empty()) {
      node.sources.push_back(std::move(source));
    } else if (have_a_step(indices)) {
      source.base += indices[0] * source.strides[dimension];
      source.strides[dimension] *= indices.size() > 1 ? indices[1] - indices[0] : 1;
      node.sources.push_back(std::move(source));
    } else {
      add_sources(gathered_without_rule(source, sizes, dimension, indices), node);
    }
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

Tracked scatter(const Tracked& a, std::size_t dimension, const std::vector<std::int64_t>& indices,
                std::int64_t size) {
  const std::int64_t rows = split_at(a.sizes(), dimension).size;
  if (std::ssize(indices) != rows) throw std::invalid_argument("scatter: an index for each row");
  std::vector<std::int64_t> row_of(static_cast<std::size_t>(std::max<std::int64_t>(size, 0)), rows);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= size) {
      throw std::invalid_argument("scatter: an index outside of the dimension");
    }
    std::int64_t& row = row_of[static_cast<std::size_t>(indices[i])];
    if (row != rows) throw std::invalid_argument("scatter: two rows with one index");
    row = static_cast<std::int64_t>(i);
  }
  TrackedSizes one = a.sizes();
  one[dimension] = 1;
  const Tracked nothing(std::vector<double>(static_cast<std::size_t>(elements_of(one))), one,
                        *a.node()->numerics);
  return gather(joined({a, nothing}, dimension), dimension, row_of);
}

Tracked transposed(Tracked a) {
  TrackedSizes sizes = a.sizes();
  if (sizes.size() < 2) throw std::invalid_argument("transposed: fewer than two dimensions");
  const std::size_t last = sizes.size() - 1;
  const std::int64_t rows = sizes[last - 1], columns = sizes[last];
  std::vector<std::size_t> from;
  for (std::int64_t matrix = 0; matrix * rows * columns < elements_of(sizes); ++matrix) {
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t row = 0; row < rows; ++row) {
        from.push_back(static_cast<std::size_t>((matrix * rows + row) * columns + column));
      }
    }
  }
  std::swap(sizes[last - 1], sizes[last]);
  TrackedNode node = std::move(a).release();
  for (ErrorSource& source : node.sources)
    std::swap(source.strides[last - 1], source.strides[last]);
  return picked(std::move(node), std::move(sizes), from);
}

}  // namespace plumb::reference
