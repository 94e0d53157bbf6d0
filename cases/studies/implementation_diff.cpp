// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/implementation_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "cases/drivers/session.h"
#include "cases/studies/allowed_difference.h"
#include "cases/studies/stored_launch.h"
#include "cases/tables/contract.h"

namespace plumb::cases {

namespace {

constexpr Fill kFills[] = {Fill::real, Fill::exact, Fill::adversarial};

// A launch with its verdict and its expectations.
struct JudgedLaunch {
  StoredLaunch stored;
  std::string wrong;  // first line of the failed verdict; "" if the result is right
  Expectations expectations;

  // The error model of an output, in the output's own shape. Null if there is none.
  const reference::Estimate* estimate_of(const HostTensor& output) const {
    for (const Expectation& one : expectations) {
      const reference::Estimate* const estimate = one.truth->estimate();
      const bool same = estimate != nullptr && one.stored->spec().name == output.spec().name &&
                        estimate->rows == output.rows() && estimate->columns == output.columns();
      if (same) return estimate;
    }
    return nullptr;
  }
};

void judge(JudgedLaunch& launch, double budget) {
  const StoredLaunch& stored = launch.stored;
  if (!stored.damage.empty()) launch.wrong = stored.damage.front();
  if (verdict_cost(*stored.problem) > budget) return;
  launch.expectations = stored.problem->expect(stored.step, stored.tensors,
                                               to_reference(stored.declared), stored.declared);
  for (const TensorReport& report : compare(launch.expectations)) {
    if (!launch.wrong.empty() || report.passed()) continue;
    launch.wrong = report.failures.front();
  }
}

JudgedLaunch launch_and_judge(const Case& which, const RunOptions& options, Fill fill) {
  JudgedLaunch launch;
  try {
    launch.stored = launch_once(which, options, fill);
  } catch (const device::DeviceError& error) {
    if (error.kind() == device::ErrorKind::unsupported) throw Unsupported(error.what());
    launch.wrong = fmt::format("{}: {}", device::name_of(error.kind()), error.what());
    return launch;
  }
  judge(launch, options.verdict_budget);
  return launch;
}

std::int64_t different_bits(const std::byte* a, const std::byte* b, std::size_t bytes) {
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    bits += std::popcount(static_cast<unsigned>(std::to_integer<std::uint8_t>(a[i] ^ b[i])));
  }
  return bits;
}

// One output of both launches.
struct ComparedOutput {
  const HostTensor &base, &change;
  const reference::Estimate *of_base, *of_change;
  RowMask promised;
  ColumnRanges columns;
  std::string_view fill;

  double bound(std::int64_t element) const {
    return of_base == nullptr || of_change == nullptr
               ? -1
               : allowed_difference(*of_base, element, *of_change, element);
  }
};

// Returns true if the elements differ.
bool compare_element(const ComparedOutput& both, std::int64_t row, std::int64_t column,
                     OutputDifference& difference) {
  const std::size_t size = size_of(both.base.spec().dtype);
  const std::size_t at = static_cast<std::size_t>(both.base.row_offset(row) + column) * size;
  const std::int64_t bits =
      different_bits(both.base.bytes().data() + at, both.change.bytes().data() + at, size);
  if (bits == 0) return false;
  difference.bits_differ += bits;
  const double a = both.base.value(row, column), b = both.change.value(row, column);
  const double bound = both.bound(row * both.base.columns() + column);
  const double share = bound < 0 ? -1 : share_of_allowed(a, b, bound);
  if (difference.where.empty() || share > difference.of_bound) {
    difference.of_bound = share;
    difference.where = fmt::format("{} fill, {} {}: {:.9g} and {:.9g}", both.fill,
                                   both.base.spec().name, both.base.coordinates(row, column), a, b);
  }
  return true;
}

void compare_output(const ComparedOutput& both, OutputDifference& difference) {
  if (both.of_base != nullptr) difference.of_bound = std::max(difference.of_bound, 0.0);
  for (std::int64_t row = 0; row < both.base.rows(); ++row) {
    if (!is_promised(both.promised, row)) continue;
    const ColumnRange range = columns_of(both.columns, both.base, row);
    std::int64_t differ = 0;
    for (std::int64_t c = range.begin; c < range.end; ++c) {
      differ += compare_element(both, row, c, difference);
    }
    ++difference.rows;
    difference.elements += range.end - range.begin;
    difference.elements_differ += differ;
    difference.rows_differ += differ > 0;
  }
}

// Declares the weaker of both promises about selected indices: their order, and ties.
// PLUMB_INDICES_OWN_ORDER is weakened too: each implementation has another order of its own.
plumb_numerics weaker(const plumb_numerics& a, const plumb_numerics& b) {
  plumb_numerics both = a;
  const bool same_order = a.index_order == b.index_order;
  if (!same_order || a.index_order == PLUMB_INDICES_OWN_ORDER) {
    both.index_order = PLUMB_INDICES_ANY_ORDER;
  }
  const bool lowest = a.equal_keys == PLUMB_EQUAL_KEYS_LOWEST_INDEX && a.equal_keys == b.equal_keys;
  if (!lowest) both.equal_keys = PLUMB_EQUAL_KEYS_ANY;
  return both;
}

OutputDifference& entry_of(ImplementationDiff& diff, const std::string& tensor) {
  const auto found = std::ranges::find(diff.outputs, tensor, &OutputDifference::tensor);
  if (found != diff.outputs.end()) return *found;
  diff.outputs.push_back({.tensor = tensor, .where = {}});
  return diff.outputs.back();
}

void compare_launches(const JudgedLaunch& base, const JudgedLaunch& change, Fill fill,
                      ImplementationDiff& diff) {
  const StoredLaunch &a = base.stored, &b = change.stored;
  const plumb_numerics declared = weaker(a.declared, b.declared);
  const bool wrong = !base.wrong.empty() || !change.wrong.empty();
  for (const HostTensor& tensor : a.tensors.all()) {
    const TensorSpec& spec = tensor.spec();
    if (spec.role != Role::output) continue;
    const HostTensor& other = b.tensors.at(spec.name);
    const auto one_form = a.problem->canonical(a.tensors, spec, declared);
    const auto other_form = b.problem->canonical(b.tensors, spec, declared);
    OutputDifference& output = entry_of(diff, spec.name);
    const std::int64_t before = output.elements_differ;
    compare_output({.base = one_form ? *one_form : tensor,
                    .change = other_form ? *other_form : other,
                    .of_base = base.estimate_of(tensor),
                    .of_change = change.estimate_of(other),
                    .promised = a.problem->promised_rows_by_inputs(a.step, a.tensors, spec),
                    .columns = a.problem->promised_columns(a.tensors, spec),
                    .fill = name_of(fill)},
                   output);
    const bool modelled = base.estimate_of(tensor) != nullptr;
    if (!modelled && wrong && output.elements_differ > before) output.beyond = true;
  }
}

// Keeps the first wrong line, prefixed with its fill, because another fill may give the same line.
void keep_first(std::string& first, const std::string& wrong, Fill fill) {
  if (first.empty() && !wrong.empty()) first = fmt::format("{} fill: {}", name_of(fill), wrong);
}

bool has_launched(const JudgedLaunch& launch) { return launch.stored.problem != nullptr; }

}  // namespace

bool ImplementationDiff::beyond() const {
  return std::ranges::any_of(outputs, &OutputDifference::beyond);
}

std::int64_t ImplementationDiff::elements_differ() const {
  std::int64_t sum = 0;
  for (const OutputDifference& output : outputs) sum += output.elements_differ;
  return sum;
}

Case under_both_contracts(const Case& which, const RunOptions& base, const RunOptions& change) {
  const auto under = [&](const RunOptions& options, const Case& one) {
    return under_contract(options.implementation(options.platform, false), one);
  };
  Case both = under(change, under(base, which));
  if (both.row.words == under(base, under(change, which)).row.words) return both;
  throw Unsupported(fmt::format("the contracts differ: \"{}\" and \"{}\"",
                                under(base, which).row.contract, both.row.contract));
}

ImplementationDiff diff_implementations(const Case& which, const RunOptions& base,
                                        const RunOptions& change) {
  ImplementationDiff diff;
  try {
    const Case both = under_both_contracts(which, base, change);
    for (const Fill fill : kFills) {
      const JudgedLaunch a = launch_and_judge(both, base, fill);
      const JudgedLaunch b = launch_and_judge(both, change, fill);
      keep_first(diff.base_wrong, a.wrong, fill);
      keep_first(diff.change_wrong, b.wrong, fill);
      if (!has_launched(a) || !has_launched(b)) continue;
      if (!same_inputs(a.stored.tensors, b.stored.tensors)) {
        throw Unsupported("the inputs of the two launches differ");
      }
      compare_launches(a, b, fill, diff);
    }
  } catch (const Unsupported& reason) {
    diff.not_compared = reason.what();
  }
  for (OutputDifference& output : diff.outputs) output.beyond |= output.of_bound > 1;
  return diff;
}

}  // namespace plumb::cases
