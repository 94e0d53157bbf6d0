// SPDX-License-Identifier: Apache-2.0
#include "golden/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "cases/judge/judge.h"
#include "cases/studies/agreement.h"

namespace plumb::golden {

namespace {

using cases::HostTensor;

// Rows of two tensors whose values are stored in both, as a pair of host tensors.
struct StoredRows {
  std::vector<std::int64_t> numbers;  // row numbers in the tensor
  HostTensor had, has;
};

HostTensor table_of(const TensorGolden& tensor, const std::vector<std::int64_t>& rows) {
  HostTensor table({.name = tensor.name,
                    .dtype = tensor.dtype,
                    .shape = {static_cast<std::int64_t>(rows.size()), tensor.columns()}});
  const std::size_t row_bytes = tensor.row_bytes();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t at = static_cast<std::size_t>(rows[i]);
    if (tensor.is_sampled()) {
      at = static_cast<std::size_t>(
          std::lower_bound(tensor.sampled_rows.begin(), tensor.sampled_rows.end(), rows[i]) -
          tensor.sampled_rows.begin());
    }
    std::memcpy(table.bytes().data() + i * row_bytes, tensor.values.data() + at * row_bytes,
                row_bytes);
  }
  return table;
}

std::vector<std::int64_t> stored_rows(const TensorGolden& tensor) {
  if (tensor.is_sampled()) return tensor.sampled_rows;
  std::vector<std::int64_t> all(static_cast<std::size_t>(tensor.rows()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  return all;
}

StoredRows common_rows(const TensorGolden& had, const TensorGolden& has) {
  const std::vector<std::int64_t> a = stored_rows(had), b = stored_rows(has);
  std::vector<std::int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return {both, table_of(had, both), table_of(has, both)};
}

std::size_t histogram_column(double distance) {
  if (!std::isfinite(distance)) return 7;
  constexpr double kLast[] = {1, 2, 4, 8, 16, 64};
  std::size_t i = 0;
  while (i < std::size(kLast) && distance > kLast[i]) ++i;
  return i;
}

bool same_element(const HostTensor& a, const HostTensor& b, std::int64_t row, std::int64_t column) {
  const std::size_t size = cases::size_of(a.spec().dtype);
  const auto at = static_cast<std::size_t>(row * a.columns() + column) * size;
  return std::memcmp(a.bytes().data() + at, b.bytes().data() + at, size) == 0;
}

// The part of the distance of two results that their roundings do not explain, as a share of the
// largest arithmetic difference. Infinite if one value is not finite and they differ, or if no
// difference is allowed.
double share_of(double had, double has, const GoldenCapture::Bounds& bounds, std::size_t i) {
  if (!std::isfinite(had) || !std::isfinite(has)) {
    return had == has || (std::isnan(had) && std::isnan(has)) ? 0 : INFINITY;
  }
  const double distance = std::abs(had - has) - bounds.rounding.at(i);
  return distance <= 0 ? 0 : distance / bounds.arithmetic.at(i);
}

void keep_largest(const MovedElement& moved, TensorDrift& drift) {
  std::vector<MovedElement>& largest = drift.largest;
  if (largest.size() == kMostMoved && !(moved.ulp > largest.back().ulp)) return;
  const auto behind = std::find_if(largest.begin(), largest.end(), [&](const MovedElement& other) {
    return moved.ulp > other.ulp;
  });
  largest.insert(behind, moved);
  if (largest.size() > kMostMoved) largest.pop_back();
}

void add_element(const StoredRows& rows, std::int64_t row, std::int64_t column,
                 const GoldenCapture::Bounds* bounds, TensorDrift& drift) {
  const double had = rows.had.value(row, column), has = rows.has.value(row, column);
  const double ulp = cases::steps_between(rows.had.spec().dtype, had, has);
  ++drift.elements_moved;
  ++drift.histogram[histogram_column(ulp)];
  const std::int64_t number = rows.numbers[static_cast<std::size_t>(row)];
  if (bounds) {
    const auto i = static_cast<std::size_t>(number * rows.had.columns() + column);
    drift.of_bound = std::max(drift.of_bound, share_of(had, has, *bounds, i));
  }
  keep_largest({number, column, had, has, ulp}, drift);
  if (!drift.where.empty() && !(ulp > drift.ulp)) return;
  drift.ulp = ulp;
  drift.where = fmt::format("row {}, column {}: was {:.9g}, is {:.9g}", number, column, had, has);
}

double norm_between(const HostTensor& had, const HostTensor& has) {
  double squares = 0;
  for (std::int64_t row = 0; row < had.rows(); ++row) {
    for (std::int64_t column = 0; column < had.columns(); ++column) {
      const double apart = had.value(row, column) - has.value(row, column);
      if (std::isfinite(apart)) squares += apart * apart;
    }
  }
  return std::sqrt(squares);
}

bool row_moved(const TensorGolden& had, const TensorGolden& has, std::int64_t row,
               const StoredRows& rows) {
  if (had.is_sampled() && has.is_sampled()) {
    const auto at = static_cast<std::size_t>(row);
    return had.row_checksums[at] != has.row_checksums[at];
  }
  const std::size_t bytes = had.row_bytes();
  const auto at = static_cast<std::size_t>(row) * bytes;
  return std::memcmp(rows.had.bytes().data() + at, rows.has.bytes().data() + at, bytes) != 0;
}

std::string other_tensor(const TensorGolden& had, const TensorGolden& has) {
  if (had.shape != has.shape) return "another shape";
  if (had.strides != has.strides) return "other strides";
  if (had.dtype != has.dtype) return "another dtype";
  if (had.format != has.format) return fmt::format("{} instead of {}", has.format, had.format);
  if (had.scale_layout != has.scale_layout) return "another layout of scales";
  if (had.is_sampled() != has.is_sampled()) return "stored in another way";
  return "";
}

std::optional<TensorSketch> sketch_or_values(const TensorGolden& tensor) {
  if (tensor.sketch || !tensor.is_whole()) return tensor.sketch;
  return sketch_of(table_of(tensor, stored_rows(tensor)));
}

// "0-1023": columns of the parts that differ; "" for all.
std::string columns_of_parts(const SketchDifference& difference, std::int64_t columns) {
  constexpr auto kParts = static_cast<std::int64_t>(TensorSketch::kParts);
  const auto first = static_cast<std::int64_t>(difference.first_part);
  const auto behind = static_cast<std::int64_t>(difference.last_part) + 1;
  // The first column of a part: column * kParts / columns is its number.
  const auto begin = [&](std::int64_t part) { return (part * columns + kParts - 1) / kParts; };
  if (begin(first) == 0 && begin(behind) == columns) return "";
  return fmt::format("{}-{}", begin(first), begin(behind) - 1);
}

// Adds the statistics of both sides and the norm of the difference. The norm is exact if both sides
// have all values.
void add_norms(const TensorGolden& had, const TensorGolden& has, const StoredRows& rows,
               TensorDrift& drift) {
  const std::optional<TensorSketch> before = sketch_or_values(had), after = sketch_or_values(has);
  if (before) drift.was = before->statistics;
  if (after) drift.is = after->statistics;
  if (had.is_whole() && has.is_whole()) {
    drift.difference = norm_between(rows.had, rows.has);
  } else if (before && after) {
    const SketchDifference difference = difference_of(*before, *after);
    drift.difference = difference.norm;
    drift.estimated = true;
    if (difference.norm > 0) drift.columns = columns_of_parts(difference, had.columns());
  }
}

// The drift of a decode step's digests. Both sides have all values.
TensorDrift drift_of_calls(const StoredRows& steps, TensorDrift drift) {
  drift.of_calls = true;
  drift.elements = steps.had.elements();
  for (std::int64_t step = 0; step < steps.had.rows(); ++step) {
    for (std::int64_t call = 0; call < steps.had.columns(); ++call) {
      if (same_element(steps.had, steps.has, step, call)) continue;
      if (drift.elements_moved++ == 0) drift.where = fmt::format("step {}, call {}", step, call);
    }
  }
  return drift;
}

TensorDrift drift_of(const TensorGolden& had, const TensorGolden& has,
                     const GoldenCapture::Bounds* bounds) {
  TensorDrift drift{
      .tensor = had.name, .rows = had.rows(), .where = {}, .other = other_tensor(had, has)};
  if (had.digest == has.digest || !drift.other.empty()) return drift;
  const StoredRows rows = common_rows(had, has);
  std::vector<std::int64_t> moved;
  for (std::int64_t row = 0; row < had.rows(); ++row) {
    if (row_moved(had, has, row, rows)) moved.push_back(row);
  }
  drift.rows_moved = static_cast<std::int64_t>(moved.size());
  drift.moved_rows = cases::row_ranges(moved);
  const bool of_calls = had.format == kCallDigests && had.is_whole() && has.is_whole();
  if (of_calls) return drift_of_calls(rows, std::move(drift));
  add_norms(had, has, rows, drift);
  drift.elements = rows.had.elements();
  for (std::int64_t row = 0; row < rows.had.rows(); ++row) {
    for (std::int64_t c = 0; c < rows.had.columns(); ++c) {
      if (!same_element(rows.had, rows.has, row, c)) add_element(rows, row, c, bounds, drift);
    }
  }
  return drift;
}

// The reference may reject a tensor for its bias or direction while every element is within its
// bound.
std::string bound_text(const TensorDrift& drift) {
  if (drift.rejected) return ", rejected by the reference";
  if (drift.of_bound < 0) return "";
  if (drift.of_bound == 0) return ", within the last rounding";
  return fmt::format(", {:.2g} of the bound", drift.of_bound);
}

// "in L2 norm about 0.012 of 90.79, columns 0-1023"
std::string norm_text(const TensorDrift& drift) {
  if (drift.difference < 0) return "values not stored, checksums only";
  std::string text =
      fmt::format("in L2 norm about {:.3g} of {:.4g}", drift.difference, drift.was->norm);
  if (drift.difference == 0) text = "too small a difference for the sketch";
  if (!drift.columns.empty()) text += ", columns " + drift.columns;
  if (drift.was->non_finite != drift.is->non_finite) {
    text += fmt::format("; {} elements are not finite, {} were", drift.is->non_finite,
                        drift.was->non_finite);
  }
  return text;
}

std::string input_difference(const CaseGolden& golden, const CaseGolden& other) {
  for (const auto& [name, digest] : golden.inputs) {
    const auto found = other.inputs.find(name);
    if (found == other.inputs.end()) return name + " is gone";
    if (found->second != digest) return name + " has other values";
  }
  for (const auto& [name, digest] : other.inputs) {
    if (!golden.inputs.contains(name)) return name + " is new";
  }
  return "";
}

}  // namespace

std::vector<TensorDrift> drift_between(const CaseGolden& golden, const CaseGolden& other,
                                       const GoldenCapture* capture) {
  std::vector<TensorDrift> drifts;
  const std::string inputs = input_difference(golden, other);
  if (!inputs.empty()) {
    drifts.push_back({.tensor = "inputs", .where = {}, .other = inputs});
  }
  for (const TensorGolden& had : golden.outputs) {
    const auto has = std::find_if(other.outputs.begin(), other.outputs.end(),
                                  [&](const TensorGolden& t) { return t.name == had.name; });
    if (has == other.outputs.end()) {
      drifts.push_back({.tensor = had.name, .where = {}, .other = "gone"});
    } else if (had.digest != has->digest || !other_tensor(had, *has).empty()) {
      drifts.push_back(drift_of(had, *has, capture ? capture->bounds_of(had.name) : nullptr));
      drifts.back().rejected = capture && capture->rejects(had.name);
    }
  }
  for (const TensorGolden& has : other.outputs) {
    const auto had = std::find_if(golden.outputs.begin(), golden.outputs.end(),
                                  [&](const TensorGolden& t) { return t.name == has.name; });
    if (had == golden.outputs.end()) {
      drifts.push_back({.tensor = has.name, .where = {}, .other = "new"});
    }
  }
  return drifts;
}

std::string histogram_text(const TensorDrift& drift) {
  std::string text;
  for (std::size_t i = 0; i < kHistogram.size(); ++i) {
    if (drift.histogram[i] == 0) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", kHistogram[i], drift.histogram[i]);
  }
  return text;
}

std::string text_of(const TensorDrift& drift) {
  if (!drift.other.empty()) return fmt::format("{}: {}", drift.tensor, drift.other);
  if (drift.of_calls) {
    return fmt::format("{} of {} calls gave other bits, in {} of {} steps; the first is {}",
                       drift.elements_moved, drift.elements, drift.rows_moved, drift.rows,
                       drift.where);
  }
  std::string text =
      fmt::format("{}: {} of {} rows moved", drift.tensor, drift.rows_moved, drift.rows);
  if (!drift.moved_rows.empty()) text += fmt::format(" ({})", drift.moved_rows);
  if (drift.elements_moved == 0) return text + bound_text(drift) + "; " + norm_text(drift);
  text += fmt::format(", {} of {} stored elements, at most {:.4g} ulp", drift.elements_moved,
                      drift.elements, drift.ulp);
  text += bound_text(drift) + "; " + drift.where;
  return drift.estimated ? text + "; " + norm_text(drift) : text;
}

}  // namespace plumb::golden
