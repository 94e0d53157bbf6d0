// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

bool has(const TensorSet& tensors, const std::string& name) {
  const auto& all = tensors.all();
  return std::any_of(all.begin(), all.end(),
                     [&](const HostTensor& t) { return t.spec().name == name; });
}

// `got` with the expected bytes wherever both calls left the old contents unchanged.
HostTensor without_kept(const CallRecorder::CallRecording& got,
                        const CallRecorder::CallRecording& expected, const std::string& name) {
  HostTensor result = got.tensors.at(name);
  const std::string before = name + "_before";
  if (!has(got.tensors, before)) return result;
  const Bytes& got_before = got.tensors.at(before).bytes();
  const Bytes& wanted = expected.tensors.at(name).bytes();
  const Bytes& wanted_before = expected.tensors.at(before).bytes();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool kept = result.bytes()[i] == got_before[i] && wanted[i] == wanted_before[i];
    if (kept) result.bytes()[i] = wanted[i];
  }
  return result;
}

// An output, with zeros wherever the call left the old contents unchanged.
HostTensor without_unchanged(const CallRecorder::CallRecording& call, const std::string& name) {
  HostTensor result = call.tensors.at(name);
  const std::string before = name + "_before";
  if (!has(call.tensors, before)) return result;
  const Bytes& old = call.tensors.at(before).bytes();
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (result.bytes()[i] == old[i]) result.bytes()[i] = std::byte{0};
  }
  return result;
}

// Whether all elements that the op promises are equal. This is far cheaper than making a report.
bool same_bits(const HostTensor& got, const HostTensor& wanted, const RowMask& rows,
               const ColumnRanges& columns) {
  if (got.bytes().size() != wanted.bytes().size()) return false;
  const std::size_t size = size_of(wanted.spec().dtype);
  for (std::int64_t row = 0; row < wanted.rows(); ++row) {
    if (!is_promised(rows, row)) continue;
    const ColumnRange range = columns_of(columns, wanted, row);
    const auto first = static_cast<std::size_t>(wanted.row_offset(row) + range.begin) * size;
    const auto bytes = static_cast<std::size_t>(range.end - range.begin) * size;
    if (std::memcmp(got.bytes().data() + first, wanted.bytes().data() + first, bytes) != 0) {
      return false;
    }
  }
  return true;
}

// A line about two results that cannot be compared; nullopt if they can.
std::optional<std::string> other_shape(const HostTensor& got, const HostTensor& wanted) {
  const TensorSpec &one = got.spec(), &other = wanted.spec();
  if (one.dtype == other.dtype && one.shape == other.shape) return std::nullopt;
  return fmt::format("{}: {} {} in this run, but {} {} in the other one", one.name,
                     name_of(one.dtype), one.shape, name_of(other.dtype), other.shape);
}

std::optional<TensorReport> difference(const CallRecorder::CallRecording& got,
                                       const CallRecorder::CallRecording& expected,
                                       const std::string& name, const RowMask& rows,
                                       std::string_view what) {
  const HostTensor& wanted = expected.tensors.at(name);
  if (auto line = other_shape(got.tensors.at(name), wanted)) {
    TensorReport report;
    report.tensor = name;
    report.rows_total = wanted.rows();
    report.failures.push_back(std::move(*line));
    return report;
  }
  ColumnRanges columns;
  if (expected.problem)
    columns = expected.problem->promised_columns(expected.tensors, wanted.spec());
  if (same_bits(got.tensors.at(name), wanted, rows, columns)) return std::nullopt;
  TensorReport report = judge_bits(without_kept(got, expected, name), wanted, rows, what, columns);
  if (report.passed()) return std::nullopt;
  return report;
}

RowMask promised_rows(const CallRecorder::CallRecording& recording, const TensorSpec& spec) {
  if (!recording.problem) return {};
  return recording.problem->promised_rows_by_inputs(recording.step(), recording.tensors, spec);
}

// Rows that the op promises. If the tensor has a row per token, only those of the first tokens.
RowMask rows_of(const CallRecorder::CallRecording& recording, const CallRecorder::TensorCopy& copy,
                const TokenRows& first) {
  const HostTensor& tensor = recording.tensors.at(copy.tensor);
  RowMask rows = promised_rows(recording, tensor.spec());
  const auto dimension = token_dimension(tensor, first.tokens);
  if (first.count == first.tokens || !dimension) return rows;
  rows.resize(static_cast<std::size_t>(tensor.rows()), true);
  const auto& shape = tensor.spec().shape;
  std::int64_t rows_of_one = 1;
  for (std::size_t i = *dimension + 1; i + 1 < shape.size(); ++i) rows_of_one *= shape[i];
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::int64_t token = static_cast<std::int64_t>(row) / rows_of_one % first.tokens;
    if (token >= first.count) rows[row] = false;
  }
  return rows;
}

}  // namespace

bool have_same_outputs(const CallRecorder::CallRecording& a, const CallRecorder::CallRecording& b) {
  return std::all_of(a.copies.begin(), a.copies.end(), [&](const CallRecorder::TensorCopy& copy) {
    return copy.before || a.tensors.at(copy.tensor).bytes() == b.tensors.at(copy.tensor).bytes();
  });
}

std::optional<TensorReport> different_output(const CallRecorder::CallRecording& got,
                                             const CallRecorder::CallRecording& expected,
                                             const TokenRows& defined, std::string_view what) {
  for (const CallRecorder::TensorCopy& copy : expected.copies) {
    const Bytes& wanted = expected.tensors.at(copy.tensor).bytes();
    if (copy.before || got.tensors.at(copy.tensor).bytes() == wanted) continue;
    auto report = difference(got, expected, copy.tensor, rows_of(expected, copy, defined), what);
    if (report) return report;
  }
  return std::nullopt;
}

std::optional<std::string> output_difference(const CallRecorder::CallRecording& got,
                                             const CallRecorder::CallRecording& expected,
                                             const TokenRows& defined) {
  const auto report = different_output(got, expected, defined,
                                       "differs from the same step run eagerly on fresh state");
  if (!report) return std::nullopt;
  return report->failures.front();
}

std::optional<std::string> live_row_difference(const CallRecorder::CallRecording& got,
                                               const CallRecorder::CallRecording& expected,
                                               const TokenRows& live) {
  for (const CallRecorder::TensorCopy& copy : expected.copies) {
    const HostTensor& tensor = expected.tensors.at(copy.tensor);
    const Bytes& bytes = got.tensors.at(copy.tensor).bytes();
    if (copy.before || bytes.empty() || bytes == tensor.bytes()) continue;
    const auto report = difference(got, expected, copy.tensor, rows_of(expected, copy, live),
                                   "differs where only padding and scratch hold other values");
    if (report) return report->failures.front();
  }
  return std::nullopt;
}

std::uint64_t promised_digest(const CallRecorder::CallRecording& call, const TokenRows& defined) {
  std::uint64_t digest = 0;
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    if (copy.before) continue;
    const HostTensor tensor = without_unchanged(call, copy.tensor);
    const RowMask rows = rows_of(call, copy, defined);
    ColumnRanges columns;
    if (call.problem) columns = call.problem->promised_columns(call.tensors, tensor.spec());
    const std::size_t size = size_of(tensor.spec().dtype);
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      if (!is_promised(rows, row)) continue;
      const ColumnRange range = columns_of(columns, tensor, row);
      if (range.end <= range.begin) continue;
      const auto first = static_cast<std::size_t>(tensor.row_offset(row) + range.begin) * size;
      const auto bytes = static_cast<std::size_t>(range.end - range.begin) * size;
      digest = XXH3_64bits_withSeed(tensor.bytes().data() + first, bytes,
                                    mix(digest, static_cast<std::uint64_t>(row)));
    }
  }
  return digest;
}

std::optional<DifferentInput> different_input(const CallRecorder::CallRecording& got,
                                              const CallRecorder::CallRecording& expected) {
  for (std::size_t i = 0; i < expected.copies.size(); ++i) {
    const std::string& tensor = expected.copies[i].tensor;
    if (!expected.copies[i].before) continue;
    if (got.tensors.at(tensor).bytes() == expected.tensors.at(tensor).bytes()) continue;
    return DifferentInput{tensor, got.copies.at(i).from, expected.copies[i].from};
  }
  return std::nullopt;
}

}  // namespace plumb::cases
