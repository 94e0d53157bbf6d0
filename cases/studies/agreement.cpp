// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/agreement.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cases/studies/stored_launch.h"

namespace plumb::cases {

namespace {

// Index of a float among all floats in ascending order. The difference of two indices counts the
// steps between two floats.
std::int64_t place_of(Dtype dtype, double value) {
  const auto bits = std::bit_cast<std::int32_t>(static_cast<float>(value));
  const std::int64_t magnitude = bits & 0x7fffffff;
  const std::int64_t place = dtype == Dtype::bf16 ? magnitude >> 16 : magnitude;
  return bits < 0 ? -place : place;
}

void compare_element(const HostTensor& a, const HostTensor& b, std::int64_t row,
                     std::int64_t column, TensorAgreement& agreement) {
  const std::size_t size = size_of(a.spec().dtype);
  const std::size_t at = static_cast<std::size_t>(a.row_offset(row) + column) * size;
  ++agreement.elements;
  if (std::memcmp(a.bytes().data() + at, b.bytes().data() + at, size) == 0) {
    ++agreement.equal;
    return;
  }
  const double left = a.value(row, column), right = b.value(row, column);
  const double distance = steps_between(a.spec().dtype, left, right);
  if (!agreement.where.empty() && !(distance > agreement.distance)) return;
  agreement.distance = distance;
  agreement.where = fmt::format("{} {}: {:.9g} and {:.9g}", a.spec().name,
                                a.coordinates(row, column), left, right);
}

TensorAgreement compare_tensors(const HostTensor& a, const HostTensor& b, const RowMask& promised,
                                const ColumnRanges& columns) {
  TensorAgreement agreement{.tensor = a.spec().name, .where = {}};
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    if (!is_promised(promised, row)) continue;
    const ColumnRange range = columns_of(columns, a, row);
    for (std::int64_t c = range.begin; c < range.end; ++c) {
      compare_element(a, b, row, c, agreement);
    }
  }
  return agreement;
}

}  // namespace

double steps_between(Dtype dtype, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<double>::infinity();
  }
  if (dtype != Dtype::bf16 && dtype != Dtype::f32) return std::abs(a - b);
  return std::abs(static_cast<double>(place_of(dtype, a) - place_of(dtype, b)));
}

std::vector<TensorAgreement> compare_platforms(const Case& which, std::string_view first,
                                               std::string_view second) {
  const auto launched_on = [&](std::string_view platform) {
    RunOptions options;
    options.platform = platform;
    return launch_once(which, options);
  };
  const StoredLaunch a = launched_on(first), b = launched_on(second);
  std::vector<TensorAgreement> agreements;
  if (!same_inputs(a.tensors, b.tensors)) return agreements;
  for (const HostTensor& tensor : a.tensors.all()) {
    const TensorSpec& spec = tensor.spec();
    if (spec.role != Role::output) continue;
    agreements.push_back(compare_tensors(tensor, b.tensors.at(spec.name),
                                         a.problem->promised_rows(a.step, spec),
                                         a.problem->promised_columns(a.tensors, spec)));
  }
  return agreements;
}

}  // namespace plumb::cases
