// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "reference/rounding.h"
#include "reference/tracked/four_elements.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Past the largest number there is infinity.
double stored_as(Format format, double x) {
  const double rounded = nearest(format, x);
  return std::abs(rounded) > largest_finite(format) ? std::copysign(kInfinity, x) : rounded;
}

// A stored number: what of its error follows the error before, and what is its own.
struct StoredError {
  double follows = 0, own = 0, most = 0;
};
StoredError stored_error(Format format, double centre, double stored, double sigma, double most) {
  const auto farthest = [&](double error) {
    return std::max(std::abs(stored_as(format, centre + error) - stored),
                    std::abs(stored_as(format, centre - error) - stored));
  };
  StoredError error{.most = farthest(most)};
  const double flips = farthest(std::min(6 * sigma, most));
  if (flips == 0) return error;  // whatever the error was: everybody stores the same
  const RoundedError rounding = rounded_error(format, centre, sigma);
  error.follows = rounding.slope / sigma;
  const double own =
      rounding.variance - square(rounding.slope) + square(centre + rounding.mean - stored);
  error.own = std::max(std::sqrt(std::max(0.0, own)), flips / 6);
  return error;
}

// What is known of a row as a whole.
void set_row(const TrackedNode& node, std::int64_t row, Estimate& estimate) {
  const std::uint32_t last = node.sizes.empty() ? 1 : std::uint32_t{1} << (node.sizes.size() - 1);
  const std::int64_t begin = row * estimate.columns;
  const auto count = static_cast<std::size_t>(estimate.columns);
  double variance = 0, all = 0, largest = 0, one_sided = 0;
  for (const ErrorSource& source : node.sources) {
    const double* const effects = source.effect.data() + begin;
    const double squares = line_sums(effects, count).squares;
    const bool own = (source.varies & last) != 0;
    variance +=
        own ? squares : square(sum_with_signs(estimate.value.data() + begin, effects, count));
    all += squares;
    if (!own) largest = std::max(largest, squares);
  }
  if (!node.systematic.empty()) {
    one_sided = line_sums(node.systematic.data() + begin, count).sum;
  }
  const auto at = static_cast<std::size_t>(row);
  const auto columns = static_cast<double>(std::max<std::int64_t>(estimate.columns, 1));
  estimate.row_mean_sigma[at] = std::sqrt(variance) / columns;
  estimate.row_systematic[at] = one_sided / columns;
  if (all > 0 && std::isfinite(all)) estimate.row_concentration[at] = largest / all;
}

}  // namespace

Tracked rounded(Tracked a, Format format) {
  if (format == Format::tf32_truncated) {
    throw std::invalid_argument("rounded: to nearest only, and not to tf32_truncated");
  }
  TrackedNode node = std::move(a).release();
  const std::size_t count = node.values.size();
  const std::vector<double> sigmas = node.sigmas();
  std::vector<double> stored(count), follows(count), own(count), worst(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double centre = node.centre(i);
    stored[i] = std::isfinite(centre) ? stored_as(format, centre) : centre;
    if (!std::isfinite(stored[i])) continue;
    const StoredError error = stored_error(format, centre, stored[i], sigmas[i], node.most(i));
    follows[i] = error.follows;
    own[i] = error.own;
    worst[i] = error.most;
  }
  if (!node.centres.empty() || stored != node.values) node.centres = std::move(stored);
  for (ErrorSource& source : node.sources) {
    for (std::size_t i = 0; i < count; ++i) source.effect[i] = scaled(source.effect[i], follows[i]);
  }
  for (std::size_t i = 0; i < node.systematic.size(); ++i) node.systematic[i] *= follows[i];
  const bool known = std::ranges::all_of(worst, [](double w) { return w == 0; });
  node.worst = known ? std::vector<double>() : std::move(worst);
  if (known) node.sources.clear();
  add_source(std::move(own), false, node);
  join_own_sources(node);
  return Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

Estimate estimate_of(const Tracked& a, Format output, bool structured) {
  const TrackedNode& node = *a.node();
  const std::int64_t columns = node.sizes.empty() ? 1 : node.sizes.back();
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < node.sizes.size(); ++d) rows *= node.sizes[d];
  Estimate estimate;
  estimate.output = output;
  estimate.structured = structured;
  estimate.rows = rows;
  estimate.columns = columns;
  estimate.value = node.values;
  estimate.sigma = node.sigmas();
  estimate.worst = node.worst;
  estimate.worst.resize(node.values.size());
  for (std::vector<double>* of :
       {&estimate.row_mean_sigma, &estimate.row_systematic, &estimate.row_concentration}) {
    of->resize(static_cast<std::size_t>(rows));
  }
  if (!node.centres.empty()) estimate.shift.resize(node.values.size());
  for (std::size_t i = 0; i < estimate.shift.size(); ++i) {
    const bool finite = std::isfinite(node.values[i]) && std::isfinite(node.centres[i]);
    if (finite) estimate.shift[i] = node.centres[i] - node.values[i];
  }
  for (std::int64_t row = 0; row < rows; ++row) set_row(node, row, estimate);
  return estimate;
}

}  // namespace plumb::reference
