// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "reference/tracked/elementwise.h"
#include "reference/tracked/four_elements.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Kept function result of the source of a row's first element (SourceName::result).
double result_at(const ErrorSource& source, const TrackedSizes& sizes, std::int64_t row) {
  std::int64_t number = source.base;
  for (std::size_t d = sizes.size() - 1; d-- > 0;) {
    number += row % sizes[d] * source.strides[d];
    row /= sizes[d];
  }
  const double result = source.identity->result(number);
  return std::isfinite(result) ? result : 0;
}

// Sets row `at` of the estimate's row statistics from row `row` of the array.
void set_row(const TrackedNode& node, std::int64_t row, std::size_t at, Estimate& estimate) {
  const std::int64_t begin = row * estimate.columns;
  const auto count = static_cast<std::size_t>(estimate.columns);
  double variance = 0, all = 0, largest = 0, one_sided = 0;
  const ErrorSource* widest = nullptr;  // largest of the sources that the whole row shares
  for (const ErrorSource& source : node.sources) {
    const double* const effects = source.effect.data() + begin;
    const double squares = line_sums(effects, count).squares;
    const bool own = estimate.columns <= 1 || source.varies(node.sizes.size() - 1);
    // Infinite effects of both signs have no sum.
    const bool summed = !own && squares < kInfinity;
    variance +=
        summed ? square(sum_with_signs(node.values.data() + begin, effects, count)) : squares;
    all += squares;
    if (own || !(squares > largest)) continue;
    largest = squares;
    widest = &source;
  }
  if (!node.systematic.empty()) {
    one_sided = line_sums(node.systematic.data() + begin, count).sum;
  }
  const auto columns = static_cast<double>(std::max<std::int64_t>(estimate.columns, 1));
  estimate.row_mean_sigma[at] = std::sqrt(variance) / columns;
  estimate.row_systematic[at] = one_sided / columns;
  estimate.row_concentration[at] = all > 0 && std::isfinite(all) ? largest / all : 0;
  estimate.row_factor[at] = widest == nullptr ? 0 : result_at(*widest, node.sizes, row);
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
  estimate.resize(rows, columns);
  if (!node.centres.empty()) estimate.shift.resize(node.values.size());
  write_rows(node, 0, estimate);
  return estimate;
}

void write_rows(const TrackedNode& node, std::int64_t first, Estimate& estimate) {
  const auto count = static_cast<std::int64_t>(node.values.size());
  const std::int64_t begin = first * estimate.columns;
  std::copy(node.values.begin(), node.values.end(), estimate.value.begin() + begin);
  std::fill_n(estimate.worst.begin() + begin, count, 0.0);
  std::copy(node.worst.begin(), node.worst.end(), estimate.worst.begin() + begin);
  std::fill_n(estimate.sigma.begin() + begin, count, 0.0);
  node.write_sigmas(estimate.sigma.data() + begin);
  for (std::int64_t i = 0; i < count && !node.centres.empty(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool finite = std::isfinite(node.values[at]) && std::isfinite(node.centres[at]);
    if (finite) {
      // The difference is rounded if the centre is much larger than the value. The value gives way,
      // so that value + shift is the centre: a number that lies on a tie of the next rounding.
      const auto place = static_cast<std::size_t>(begin) + at;
      estimate.shift[place] = node.centres[at] - node.values[at];
      estimate.value[place] = node.centres[at] - estimate.shift[place];
    }
  }
  const std::int64_t rows = estimate.columns > 0 ? count / estimate.columns : 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    set_row(node, row, static_cast<std::size_t>(first + row), estimate);
  }
}

Tracked with_errors(Tracked a, const Estimate& errors, std::int64_t first_row) {
  const std::size_t count = a.values().size();
  const auto first = static_cast<std::size_t>(first_row * errors.columns);
  if (first + count > errors.sigma.size()) {
    throw std::invalid_argument("with_errors: fewer errors than elements");
  }
  TrackedNode node = std::move(a).release();
  const auto add = [&](const std::vector<double>& more, std::vector<double>& to) {
    to.resize(count);
    for (std::size_t i = 0; i < count; ++i) to[i] += more[first + i];
  };
  if (!errors.shift.empty()) {
    if (node.centres.empty()) node.centres = node.values;
    add(errors.shift, node.centres);
  }
  add(errors.worst, node.worst);
  node.systematic.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    node.systematic[i] +=
        errors.row_systematic[(first + i) / static_cast<std::size_t>(errors.columns)];
  }
  std::vector<double> own;
  add(errors.sigma, own);
  return finished(std::move(node), std::move(own), {});
}

}  // namespace plumb::reference
