// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/compare.h"

#include <algorithm>

namespace plumb::cases {

namespace {

bool has(const TensorSet& tensors, const std::string& name) {
  const auto& all = tensors.all();
  return std::any_of(all.begin(), all.end(),
                     [&](const HostTensor& t) { return t.spec().name == name; });
}

// `got` with the expected bytes wherever neither call changed what was there.
HostTensor without_kept(const Taps::Tap& got, const Taps::Tap& expected, const std::string& name) {
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

std::optional<std::string> difference(const Taps::Tap& got, const Taps::Tap& expected,
                                      const std::string& name, const RowMask& rows,
                                      std::string_view what) {
  const HostTensor& wanted = expected.tensors.at(name);
  if (got.tensors.at(name).bytes() == wanted.bytes()) return std::nullopt;
  ColumnRanges columns;
  if (expected.problem)
    columns = expected.problem->promised_columns(expected.tensors, wanted.spec());
  const TensorReport report =
      judge_bits(without_kept(got, expected, name), wanted, rows, what, {}, columns);
  if (report.passed()) return std::nullopt;
  return report.failures.front();
}

RowMask promised_rows(const Taps::Tap& tap, const TensorSpec& spec) {
  if (!tap.problem) return {};
  return tap.problem->promised_rows_by_inputs(tap.step(), tap.tensors, spec);
}

}  // namespace

std::optional<std::string> output_difference(const Taps::Tap& got, const Taps::Tap& expected) {
  for (const Taps::Copy& copy : expected.copies) {
    if (copy.before) continue;
    const TensorSpec& spec = expected.tensors.at(copy.tensor).spec();
    if (auto line = difference(got, expected, copy.tensor, promised_rows(expected, spec),
                               "differs from the same step run eagerly on fresh state")) {
      return line;
    }
  }
  return std::nullopt;
}

std::optional<std::string> live_row_difference(const Taps::Tap& got, const Taps::Tap& expected,
                                               std::int64_t live, std::int64_t tokens) {
  for (const Taps::Copy& copy : expected.copies) {
    const HostTensor& wanted = expected.tensors.at(copy.tensor);
    if (copy.before || wanted.spec().shape.front() != tokens) continue;
    RowMask rows = promised_rows(expected, wanted.spec());
    rows.resize(static_cast<std::size_t>(wanted.rows()), true);
    const std::int64_t first_dead = wanted.rows() / tokens * live;
    std::fill(rows.begin() + first_dead, rows.end(), false);
    if (auto line = difference(got, expected, copy.tensor, rows,
                               "differs where only padding holds other values")) {
      return line;
    }
  }
  return std::nullopt;
}

const Taps::Copy* different_input(const Taps::Tap& got, const Taps::Tap& expected) {
  for (const Taps::Copy& copy : expected.copies) {
    if (!copy.before) continue;
    if (got.tensors.at(copy.tensor).bytes() != expected.tensors.at(copy.tensor).bytes()) {
      return &copy;
    }
  }
  return nullptr;
}

}  // namespace plumb::cases
