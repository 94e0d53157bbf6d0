// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/elementwise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumb::reference {

namespace {

// Sizes without their missing first dimensions, which have size 1.
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

std::uint32_t broadcast_dimensions(std::uint32_t varies, const TrackedSizes& operand,
                                   const TrackedSizes& sizes) {
  std::uint32_t bits = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::size_t here = sizes.size() - 1 - d;
    const bool of_operand = d < operand.size();
    const bool is_one = sizes[here] == 1;
    const bool grown = !is_one && size_from_end(operand, d) == 1;
    const bool own = of_operand && ((varies >> (operand.size() - 1 - d)) & 1) != 0;
    // An own source of a single element is the own source of each if there is still one.
    if (!grown && (own || (is_one && !of_operand))) bits |= std::uint32_t{1} << here;
  }
  return bits;
}

std::vector<ErrorSource> broadcast_sources(TrackedNode& operand, const BroadcastLines& lines,
                                           const TrackedSizes& sizes,
                                           const std::vector<double>& derivatives) {
  std::vector<ErrorSource> all;
  all.reserve(operand.sources.size());
  for (ErrorSource& source : operand.sources) {
    ErrorSource one{
        std::move(source.identity), broadcast_dimensions(source.varies, operand.sizes, sizes), {}};
    if (operand.sizes == sizes) {
      one.effect = std::move(source.effect);
      for (std::size_t i = 0; i < derivatives.size(); ++i) {
        one.effect[i] = scaled(one.effect[i], derivatives[i]);
      }
    } else {
      one.effect.reserve(derivatives.size());
      for (const std::size_t first : lines.first) {
        for (std::size_t j = 0; j < lines.length; ++j) {
          one.effect.push_back(
              scaled(source.effect[first + j * lines.step], derivatives[one.effect.size()]));
        }
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

ResultElements::ResultElements(TrackedSizes sizes, std::shared_ptr<const Numerics> numerics,
                               int operands, bool has_centres, ResultRounding rounding)
    : rounding_(rounding),
      unit_(rounding == ResultRounding::function ? function_error(*numerics) : kUnitF32) {
  const auto count = static_cast<std::size_t>(elements_of(sizes));
  node.sizes = std::move(sizes);
  node.numerics = std::move(numerics);
  for (std::vector<double>* of : {&node.values, &node.worst, &by_first, &own_}) of->resize(count);
  if (operands > 1) by_second.resize(count);
  if (has_centres) node.centres.resize(count);
}

Tracked ResultElements::finish(std::vector<ErrorSource> of_first,
                               std::vector<ErrorSource> of_second) {
  const auto is_zero = [](double x) { return x == 0; };
  if (std::ranges::all_of(node.worst, is_zero)) node.worst.clear();
  node.sources = std::move(of_first);
  add_sources(std::move(of_second), node);
  of_second.clear();
  // What is not linear has a sign, so that elements share it. Nearly always it is nothing.
  bool tells = false;
  for (std::size_t i = 0; i < beyond_.size(); ++i) tells = tells || beyond_[i] > 0.1 * own_[i];
  if (tells) add_source(std::move(beyond_), true, node);
  add_source(std::move(own_), false, node);
  join_own_sources(node);
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

}  // namespace plumb::reference
