// SPDX-License-Identifier: Apache-2.0
//
// Exact inputs check that the moved row really is the same row in every batch: with them every
// order of operations gives nearly the same result, so a large difference means another row.
#include "cases/studies/invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "cases/studies/row_in_batch.h"

namespace plumb::cases {

namespace {

bool is_real(Dtype dtype) { return dtype == Dtype::bf16 || dtype == Dtype::f32; }

// Maps the bits of an element to an integer that grows with its value, so that neighbouring floats
// differ by 1.
std::int64_t ordered(const std::byte* element, Dtype dtype) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, size_of(dtype));
  const auto ordered_bits = [&](std::uint64_t sign) {
    const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
    return (bits & sign) != 0 ? -magnitude : magnitude;
  };
  switch (dtype) {
    case Dtype::bf16: return ordered_bits(0x8000);
    case Dtype::f32: return ordered_bits(0x80000000);
    case Dtype::i32: return static_cast<std::int32_t>(bits);
    default: return static_cast<std::int64_t>(bits);
  }
}

using OutputBytes = std::vector<std::byte>;

// Describes the differences between the row computed alone (a) and in a batch (b); coordinates and
// values are those of the first difference.
BatchDifference describe(const HostTensor& tensor, const OutputBytes& a, const OutputBytes& b) {
  const std::size_t size = size_of(tensor.spec().dtype);
  BatchDifference difference;
  difference.tensor = tensor.spec().name;
  HostTensor first = tensor, second = tensor;
  double norm = 0, distance = 0;
  for (std::size_t i = 0; i < a.size(); i += size) {
    const auto element = static_cast<std::int64_t>(i / size);
    const std::int64_t row = element / tensor.columns(), column = element % tensor.columns();
    const std::size_t at = static_cast<std::size_t>(tensor.row_offset(row) + column) * size;
    std::memcpy(&first.bytes()[at], &a[i], size);
    std::memcpy(&second.bytes()[at], &b[i], size);
    const double alone = first.value(row, column), in_batch = second.value(row, column);
    norm += alone * alone;
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    distance += (alone - in_batch) * (alone - in_batch);
    if (difference.elements++ > 0) continue;
    difference.coordinates = tensor.coordinates(row, column);
    difference.alone = alone;
    difference.in_batch = in_batch;
    difference.ulp = std::abs(static_cast<double>(ordered(&a[i], tensor.spec().dtype)) -
                              static_cast<double>(ordered(&b[i], tensor.spec().dtype)));
  }
  const bool comparable = is_real(tensor.spec().dtype) && std::isfinite(distance) && norm > 0;
  difference.share = comparable ? std::sqrt(distance / norm) : 1;
  return difference;
}

std::optional<BatchDifference> compare(const std::vector<TensorSpec>& outputs,
                                       const std::vector<OutputBytes>& alone,
                                       const std::vector<OutputBytes>& batched) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (alone[i] != batched[i]) return describe(HostTensor(outputs[i]), alone[i], batched[i]);
  }
  return std::nullopt;
}

bool has_real_input(const Problem& problem) {
  const TensorSet tensors = problem.make_tensors();
  return std::any_of(tensors.all().begin(), tensors.all().end(), [](const HostTensor& tensor) {
    return tensor.spec().role == Role::input && is_real(tensor.spec().dtype);
  });
}

// Throws NotMeasured if a difference is too large for rounding: exact inputs need little rounding
// and integers none, so the row is another one.
void refuse_what_is_no_rounding(const std::vector<BatchDifference>& differs) {
  constexpr double kRoundings = 1.0 / 64;
  for (const BatchDifference& difference : differs) {
    if (difference.share <= kRoundings) continue;
    throw NotMeasured(fmt::format("its rows depend on each other: {} has other values at size {}",
                                  difference.tensor, difference.size));
  }
}

std::vector<BatchDifference> measure(const RowInBatch& row,
                                     const std::vector<std::int64_t>& sizes) {
  std::vector<BatchDifference> differs;
  const std::vector<TensorSpec> outputs = row.outputs();
  const std::vector<OutputBytes> alone = row.run(1, false);
  if (compare(outputs, alone, row.run(1, false))) {
    throw NotMeasured("not deterministic: two runs of the row alone differ");
  }
  for (const std::int64_t size : sizes) {
    for (const bool last : {false, true}) {
      auto difference = compare(outputs, alone, row.run(size, last));
      if (!difference) continue;
      difference->size = size;
      difference->last = last;
      differs.push_back(std::move(*difference));
      break;
    }
  }
  return differs;
}

}  // namespace

std::vector<std::int64_t> default_batch_sizes(const device::Properties& properties) {
  std::vector<std::int64_t> sizes{1, 2, 4, 8, 16, 24, 32, 64};
  if (properties.simulated) return sizes;
  sizes.resize(6);
  for (std::int64_t size = 32; size <= 256; size += 8) sizes.push_back(size);
  for (std::int64_t size = 272; size <= 512; size += 16) sizes.push_back(size);
  return sizes;
}

InvarianceResult measure_invariance(const OpDefinition& op, const Row& row,
                                    const std::vector<std::int64_t>& sizes,
                                    const RunOptions& options) {
  InvarianceResult result;
  result.op = op.name;
  result.row = row.name;
  result.platform = options.platform;
  try {
    const auto properties = options.open(options.platform, {})->properties();
    result.batch = batch_parameter(op, row, properties);
    if (result.batch.empty()) throw NotMeasured("no parameter gives the number of rows");
    result.sizes = sizes;
    const auto with = [&](Fill fill) {
      const std::int64_t largest = *std::max_element(sizes.begin(), sizes.end());
      return measure(RowInBatch(op, row, result.batch, largest, fill, options), sizes);
    };
    refuse_what_is_no_rounding(with(Fill::exact));
    result.differs = with(Fill::real);
    if (!has_real_input(*op.make_problem(row, properties))) {
      refuse_what_is_no_rounding(result.differs);
    }
  } catch (const NotMeasured& reason) {
    result.not_measured = reason.what();
  } catch (const BadRow& reason) {
    result.not_measured = fmt::format("the row does not exist in every size: {}", reason.what());
  } catch (const device::DeviceError& error) {
    result.not_measured = fmt::format("{}: {}", device::name_of(error.kind()), error.what());
  }
  if (!result.not_measured.empty()) result.sizes.clear();
  return result;
}

}  // namespace plumb::cases
