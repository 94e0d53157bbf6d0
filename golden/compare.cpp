// SPDX-License-Identifier: Apache-2.0
#include "golden/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cases/studies/agreement.h"

namespace plumb::golden {

namespace {

using cases::HostTensor;

// The stored rows of two tensors as one pair of host tensors.
struct StoredRows {
  std::vector<std::int64_t> numbers;  // in the tensor
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
          std::find(tensor.sampled_rows.begin(), tensor.sampled_rows.end(), rows[i]) -
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

// How much of what two results' arithmetic may differ theirs has to, for their roundings to be this
// far apart. Infinite where a value is no number any more, or was none, or nothing may differ.
double share_of(double had, double has, const GoldenCapture::Bounds& bounds, std::size_t i) {
  if (!std::isfinite(had) || !std::isfinite(has)) {
    return had == has || (std::isnan(had) && std::isnan(has)) ? 0 : INFINITY;
  }
  const double distance = std::abs(had - has) - bounds.rounding.at(i);
  return distance <= 0 ? 0 : distance / bounds.arithmetic.at(i);
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
  if (!drift.where.empty() && !(ulp > drift.ulp)) return;
  drift.ulp = ulp;
  drift.where = fmt::format("row {}, column {}: was {:.9g}, is {:.9g}", number, column, had, has);
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

TensorDrift drift_of(const TensorGolden& had, const TensorGolden& has,
                     const GoldenCapture::Bounds* bounds) {
  TensorDrift drift{
      .tensor = had.name, .rows = had.rows(), .where = {}, .other = other_tensor(had, has)};
  if (had.digest == has.digest || !drift.other.empty()) return drift;
  const StoredRows rows = common_rows(had, has);
  for (std::int64_t row = 0; row < had.rows(); ++row) {
    drift.rows_moved += row_moved(had, has, row, rows);
  }
  drift.elements = rows.had.elements();
  if (bounds) drift.of_bound = 0;
  for (std::int64_t row = 0; row < rows.had.rows(); ++row) {
    for (std::int64_t c = 0; c < rows.had.columns(); ++c) {
      if (!same_element(rows.had, rows.has, row, c)) add_element(rows, row, c, bounds, drift);
    }
  }
  return drift;
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

// How that of this build differs from the recorded one.
std::string toolchain_of(const CaseGolden& golden, const device::Properties& device) {
  const std::string op = golden.id.substr(0, golden.id.find('/'));
  return toolchain_difference(golden.provenance, provenance_of(op, device));
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
  std::string text =
      fmt::format("{}: {} of {} rows moved", drift.tensor, drift.rows_moved, drift.rows);
  if (drift.elements_moved == 0) return text + ", none of them stored in full";
  text += fmt::format(", {} of {} stored elements, at most {:.4g} ulp", drift.elements_moved,
                      drift.elements, drift.ulp);
  if (drift.of_bound >= 0) text += fmt::format(", {:.2g} of the bound", drift.of_bound);
  return text + "; " + drift.where;
}

std::string_view name_of(Agreement agreement) {
  switch (agreement) {
    case Agreement::not_asked: return "not_asked";
    case Agreement::no_goldens: return "no_goldens";
    case Agreement::same: return "same";
    case Agreement::drifted: return "drifted";
    case Agreement::near_bound: return "near_bound";
    case Agreement::failed: return "failed";
  }
  return "?";
}

std::optional<GoldenComparison> compare_same(const CaseGolden& golden, const CaseGolden& other,
                                             const device::Properties& device) {
  if (results_digest(golden) != results_digest(other)) return std::nullopt;
  return GoldenComparison{.agreement = Agreement::same, .toolchain = toolchain_of(golden, device)};
}

GoldenComparison compare(const CaseGolden& golden, const GoldenCapture& capture, bool exact) {
  if (auto same = compare_same(golden, capture.golden(), capture.device())) return *same;
  GoldenComparison comparison{.toolchain = toolchain_of(golden, capture.device())};
  comparison.drifts = drift_between(golden, capture.golden(), &capture);
  const bool bitwise = exact || comparison.toolchain.empty();
  comparison.agreement = Agreement::drifted;
  for (const TensorDrift& drift : comparison.drifts) {
    if (drift.of_bound > kNear && comparison.agreement == Agreement::drifted) {
      comparison.agreement = Agreement::near_bound;
    }
    if (!bitwise && drift.other.empty() && !(drift.of_bound > 1)) continue;
    comparison.agreement = Agreement::failed;
    comparison.lines.push_back("golden: " + text_of(drift));
  }
  if (comparison.agreement == Agreement::failed) {
    comparison.lines.push_back(bitwise && !exact
                                   ? "golden: bits moved on the toolchain that it was recorded on"
                                   : "golden: further from it than two honest results are");
  }
  return comparison;
}

}  // namespace plumb::golden
