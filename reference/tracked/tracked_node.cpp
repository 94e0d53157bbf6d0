// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/tracked_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "reference/tracked/four_elements.h"

namespace plumb::reference {

namespace {

// Numbers sources in row-major order over the dimensions that have a stride.
void number_anew(ErrorSource& source, const TrackedSizes& sizes) {
  source.base = 0;
  std::fill(source.strides.begin() + static_cast<std::ptrdiff_t>(sizes.size()),
            source.strides.end(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (!source.varies(d)) continue;
    source.strides[d] = stride;
    stride *= std::max<std::int64_t>(sizes[d], 1);
  }
}

}  // namespace

SourceIdentity new_source() { return std::make_shared<const SourceName>(); }

SourceIdentity SourceName::picked(const Pick& pick) const {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const SourceName>& known = picked_[pick];
  SourceIdentity identity = known.lock();
  if (!identity) known = identity = new_source();
  return identity;
}

double TrackedNode::variance(std::size_t i) const {
  double total = 0;
  for (const ErrorSource& source : sources) total += square(source.effect[i]);
  return total;
}

std::vector<double> TrackedNode::reaches() const {
  if (sources.empty()) return {};
  std::vector<double> all = sigmas();
  if (worst.empty()) {
    std::ranges::fill(all, 0);
    return all;
  }
  limit_sigmas(worst.data(), all.size(), all.data());
  return all;
}

std::vector<double> TrackedNode::sigmas() const {
  std::vector<double> all(values.size());
  write_sigmas(all.data());
  return all;
}

void TrackedNode::write_sigmas(double* to) const {
  const std::size_t count = values.size();
  if (sources.size() == 1) {
    const std::vector<double>& effect = sources.front().effect;
    for (std::size_t i = 0; i < count; ++i) to[i] = std::abs(effect[i]);
  } else if (sources.size() == 2) {
    add_in_squares(sources.front().effect.data(), sources.back().effect.data(), count, to);
  } else if (!sources.empty()) {
    for (const ErrorSource& source : sources) add_squares(source.effect, to);
    take_roots(count, to);
  }
}

std::int64_t elements_of(const TrackedSizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

void check_sizes(const TrackedSizes& sizes) {
  if (sizes.size() > kMostTrackedDimensions) {
    throw std::invalid_argument(
        fmt::format("{} dimensions, more than {}", sizes.size(), kMostTrackedDimensions));
  }
  if (std::ranges::any_of(sizes, [](std::int64_t size) { return size < 0; })) {
    throw std::invalid_argument("a negative size");
  }
}

void check_alike(const Numerics& a, const Numerics& b) {
  if (&a == &b || a == b) return;
  throw std::invalid_argument("arrays of different numerics meet");
}

TrackedSplit split_at(const TrackedSizes& sizes, std::size_t dimension) {
  if (dimension >= sizes.size()) {
    throw std::invalid_argument(
        fmt::format("no dimension {} of {} dimensions", dimension, sizes.size()));
  }
  TrackedSplit split;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    (d < dimension ? split.outer : d > dimension ? split.inner : split.size) *= sizes[d];
  }
  return split;
}

bool is_shared(const ErrorSource& source, const TrackedSizes& sizes) {
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && !source.varies(d)) return true;
  }
  return false;
}

ErrorSource own_source(const TrackedSizes& sizes, std::vector<double> effect) {
  ErrorSource source{new_source(), 0, {}, std::move(effect)};
  source.strides.fill(1);
  number_anew(source, sizes);
  return source;
}

ErrorSource new_source_like(const ErrorSource& like, const TrackedSizes& sizes,
                            std::vector<double> effect) {
  ErrorSource source{new_source(), 0, like.strides, std::move(effect)};
  number_anew(source, sizes);
  return source;
}

bool are_alike(const ErrorSource& a, const ErrorSource& b, const TrackedSizes& sizes) {
  if (a.identity != b.identity || a.base != b.base) return false;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

double sign_by_chance(std::uint64_t term, std::uint64_t column) {
  constexpr std::uint64_t kColumns = 16;
  std::uint64_t z = (term * kColumns + column + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return ((z ^ (z >> 31)) & 1) != 0 ? 1 : -1;
}

void add_source(std::vector<double> effect, bool shared, TrackedNode& node) {
  if (std::ranges::all_of(effect, [](double e) { return e == 0; })) return;
  node.sources.push_back(shared ? ErrorSource{new_source(), 0, {}, std::move(effect)}
                                : own_source(node.sizes, std::move(effect)));
}

void add_sources(std::vector<ErrorSource> more, TrackedNode& node) {
  for (ErrorSource& one : more) {
    const auto known = std::ranges::find_if(
        node.sources, [&](const ErrorSource& other) { return are_alike(one, other, node.sizes); });
    if (known == node.sources.end()) {
      node.sources.push_back(std::move(one));
      continue;
    }
    for (std::size_t i = 0; i < one.effect.size(); ++i) {
      const double both = known->effect[i] + one.effect[i];
      known->effect[i] = std::isnan(both) ? kInfinity : both;
    }
  }
}

void join_own_sources(TrackedNode& node) {
  ErrorSource* first = nullptr;
  std::vector<ErrorSource> kept;
  kept.reserve(node.sources.size());
  for (ErrorSource& one : node.sources) {
    if (is_shared(one, node.sizes) || one.identity.use_count() > 1) {
      kept.push_back(std::move(one));
    } else if (first == nullptr) {
      kept.push_back(std::move(one));
      first = &kept.back();
    } else {
      double* const both = first->effect.data();
      add_in_squares(both, one.effect.data(), one.effect.size(), both);
    }
  }
  node.sources = std::move(kept);
}

Tracked with_results(Tracked a) {
  TrackedNode node = std::move(a).release();
  for (ErrorSource& source : node.sources) {
    if (is_shared(source, node.sizes) || source.identity.use_count() > 1) continue;
    const std::vector<std::int64_t> numbers = numbers_of(source, node.sizes);
    std::vector<float> results(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto number = static_cast<std::size_t>(numbers[i]);
      if (number < results.size()) results[number] = static_cast<float>(node.values[i]);
    }
    source.identity = std::make_shared<const SourceName>(std::move(results));
  }
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

Tracked::Tracked(std::vector<double> values, TrackedSizes sizes, const Numerics& numerics) {
  check_sizes(sizes);
  if (static_cast<std::int64_t>(values.size()) != elements_of(sizes)) {
    throw std::invalid_argument(
        fmt::format("{} values for {} elements", values.size(), elements_of(sizes)));
  }
  node_ = std::make_shared<TrackedNode>(
      TrackedNode{std::move(sizes), std::make_shared<const Numerics>(numerics), std::move(values)});
}

const TrackedSizes& Tracked::sizes() const { return node_->sizes; }
const std::vector<double>& Tracked::values() const { return node_->values; }
const std::vector<double>& Tracked::centres() const {
  return node_->centres.empty() ? node_->values : node_->centres;
}
double Tracked::sigma(std::int64_t i) const {
  return std::sqrt(node_->variance(static_cast<std::size_t>(i)));
}
double Tracked::worst(std::int64_t i) const { return node_->most(static_cast<std::size_t>(i)); }

TrackedNode Tracked::release() && {
  std::shared_ptr<const TrackedNode> node = std::move(node_);
  if (node.use_count() == 1) return std::move(const_cast<TrackedNode&>(*node));
  return *node;
}

}  // namespace plumb::reference
