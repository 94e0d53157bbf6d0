// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/elementwise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumb::reference {

namespace {

// Size of the dimension `from_end` places before the last one. Missing first dimensions have size
// 1.
std::int64_t size_from_end(const TrackedSizes& sizes, std::size_t from_end) {
  return from_end < sizes.size() ? sizes[sizes.size() - 1 - from_end] : 1;
}

}  // namespace

TrackedSizes broadcast_sizes(const TrackedSizes& a, const TrackedSizes& b) {
  TrackedSizes sizes(std::max(a.size(), b.size()));
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::int64_t of_a = size_from_end(a, d), of_b = size_from_end(b, d);
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      throw std::invalid_argument(
          fmt::format("[{}] and [{}] do not broadcast", fmt::join(a, ", "), fmt::join(b, ", ")));
    }
    sizes[sizes.size() - 1 - d] = of_a == 1 ? of_b : of_a;
  }
  return sizes;
}

BroadcastLines broadcast_lines(const TrackedSizes& operand, const TrackedSizes& sizes) {
  BroadcastLines lines{{0}};
  lines.length = sizes.empty() ? 1 : static_cast<std::size_t>(sizes.back());
  lines.step = size_from_end(operand, 0) == 1 ? 0 : 1;
  std::int64_t stride = size_from_end(operand, 0);
  for (std::size_t d = 1; d < sizes.size(); ++d) {
    const std::int64_t size = sizes[sizes.size() - 1 - d], own = size_from_end(operand, d);
    std::vector<std::size_t> more;
    more.reserve(lines.first.size() * static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
      const auto offset = static_cast<std::size_t>(own == 1 ? 0 : i * stride);
      for (const std::size_t first : lines.first) more.push_back(first + offset);
    }
    lines.first = std::move(more);
    stride *= own;
  }
  return lines;
}

ErrorSource broadcast_source(const ErrorSource& source, const TrackedSizes& operand,
                             const TrackedSizes& sizes) {
  ErrorSource broadcast{source.identity, source.base, {}, {}};
  for (std::size_t d = 0; d < operand.size(); ++d) {
    const std::size_t here = sizes.size() - 1 - d, there = operand.size() - 1 - d;
    if (sizes[here] == operand[there]) broadcast.strides[here] = source.strides[there];
  }
  return broadcast;
}

void TrackedOperand::prepare(const TrackedSizes& sizes, bool linear) {
  const TrackedNode& from = *node_;
  lines_ = broadcast_lines(from.sizes, sizes);
  whole_ = elements_of(from.sizes) == elements_of(sizes);
  values_ = from.values.data();
  centres_ = from.centres.empty() ? values_ : from.centres.data();
  if (is_exact()) return;
  if (linear && !from.worst.empty() &&
      std::ranges::all_of(from.worst, [](double w) { return w < kInfinity; })) {
    reach_ = most_ = from.worst.data();
    return;
  }
  reaches_ = from.reaches();
  if (reaches_.empty() || from.worst.empty()) none_.resize(from.values.size());
  reach_ = reaches_.empty() ? none_.data() : reaches_.data();
  most_ = from.worst.empty() ? none_.data() : from.worst.data();
}

void TrackedOperand::add_one_sided(const std::vector<double>& derivatives,
                                   TrackedNode& result) const {
  if (node_->systematic.empty()) return;
  result.systematic.resize(derivatives.size());
  std::size_t i = 0;
  for (const std::size_t first : lines_.first) {
    add_scaled_line(node_->systematic.data() + first, lines_.step, derivatives.data() + i,
                    lines_.length, result.systematic.data() + i);
    i += lines_.length;
  }
}

std::vector<double> TrackedOperand::passed_on(const std::vector<double>& effect,
                                              const std::vector<double>& derivatives) const {
  std::vector<double> result(derivatives.size());
  std::size_t i = 0;
  for (const std::size_t first : lines_.first) {
    scale_line(effect.data() + first, lines_.step, derivatives.data() + i, lines_.length,
               result.data() + i);
    i += lines_.length;
  }
  return result;
}

std::vector<ErrorSource> TrackedOperand::release_sources(const TrackedSizes& sizes,
                                                         const std::vector<double>& derivatives) {
  const bool sole = node_.use_count() == 1;
  std::vector<ErrorSource> all;
  all.reserve(node_->sources.size());
  for (const ErrorSource& source : node_->sources) {
    all.push_back(broadcast_source(source, node_->sizes, sizes));
    if (sole && whole_) {
      std::vector<double>& effect = const_cast<ErrorSource&>(source).effect;
      scale_line(effect.data(), 1, derivatives.data(), derivatives.size(), effect.data());
      all.back().effect = std::move(effect);
    } else {
      all.back().effect = passed_on(source.effect, derivatives);
    }
  }
  node_.reset();
  return all;
}

Tracked finished(TrackedNode node, std::vector<double> own, std::vector<double> beyond) {
  const auto is_zero = [](double x) { return x == 0; };
  if (std::ranges::all_of(node.worst, is_zero)) node.worst.clear();
  if (std::ranges::all_of(node.systematic, is_zero)) node.systematic.clear();
  // The nonlinear part has one sign, so all elements share one source for it. In most cases it is
  // negligible.
  bool tells = false;
  for (std::size_t i = 0; i < beyond.size(); ++i) tells = tells || beyond[i] > 0.1 * own[i];
  if (tells) add_source(std::move(beyond), true, node);
  add_source(std::move(own), false, node);
  join_own_sources(node);
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

}  // namespace plumb::reference
