// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/tracked/four_elements.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// What is known of a row as a whole.
void set_row(const TrackedNode& node, std::int64_t row, Estimate& estimate) {
  const std::int64_t begin = row * estimate.columns;
  const auto count = static_cast<std::size_t>(estimate.columns);
  double variance = 0, all = 0, largest = 0, one_sided = 0;
  for (const ErrorSource& source : node.sources) {
    const double* const effects = source.effect.data() + begin;
    const double squares = line_sums(effects, count).squares;
    const bool own = estimate.columns <= 1 || source.varies(node.sizes.size() - 1);
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
