// SPDX-License-Identifier: Apache-2.0
#include "trace/call_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trace/element_value.h"
#include "trace/known_call.h"

namespace plumb::trace {

namespace {

bool same_form(const TraceTensor& a, const TraceTensor& b) {
  return a.type.name == b.type.name && a.shape == b.shape && a.blocks == b.blocks &&
         !a.data.empty() && !b.data.empty();
}

// Compares bit for bit, for an op that plumb does not know.
cases::TensorDifference difference_of(const std::string& name, const TraceTensor& a,
                                      std::span<const std::byte> in_a,
                                      std::span<const std::byte> in_b) {
  cases::TensorDifference difference{.tensor = name, .first = {}, .largest = {}};
  const auto size = static_cast<std::size_t>(a.type.bytes);
  const std::size_t columns =
      a.shape.empty() ? 1 : static_cast<std::size_t>(std::max<std::int64_t>(1, a.shape.back()));
  std::size_t last_row = in_a.size();  // no row yet
  for (std::size_t i = 0; i < in_a.size() / size; ++i) {
    const std::byte *const one = in_a.data() + i * size, *const other = in_b.data() + i * size;
    ++difference.elements;
    if (std::memcmp(one, other, size) == 0) continue;
    if (difference.elements_differ++ == 0) {
      difference.first = fmt::format("{}: {} and {}", a.coordinates(static_cast<std::int64_t>(i)),
                                     element_text(a.type, one), element_text(a.type, other));
    }
    difference.rows_differ += i / columns != last_row;
    last_row = i / columns;
  }
  difference.rows = difference.elements / static_cast<std::int64_t>(columns);
  return difference;
}

void compare_bits(const TraceCall& a, const StepBytes& bytes_a, const TraceCall& b,
                  const StepBytes& bytes_b, PairReport& report) {
  for (const auto& [name, tensor] : a.after) {
    const auto other = b.after.find(name);
    if (other == b.after.end() || !same_form(tensor, other->second)) continue;
    if (tensor.data == other->second.data) continue;
    report.tensors.push_back(
        difference_of(name, tensor, bytes_a.of(tensor).bytes, bytes_b.of(other->second).bytes));
  }
  report.differ = !report.tensors.empty();
}

void compare_known(const TraceCall& a, const StepBytes& bytes_a, const TraceCall& b,
                   const StepBytes& bytes_b, const std::vector<cases::RowPair>& pairs,
                   PairReport& report) {
  const KnownCall one(a, bytes_a), other(b, bytes_b);
  cases::CallDifference difference = cases::diff_calls(one.call(), other.call(), pairs);
  report.tensors = std::move(difference.tensors);
  report.a_wrong = std::move(difference.a_wrong);
  report.b_wrong = std::move(difference.b_wrong);
  report.differ = std::ranges::count(difference.differs, true);
  report.beyond = std::ranges::count(difference.beyond, true);
}

}  // namespace

PairReport compare_pair(const TraceCall& a, const StepBytes& bytes_a, const TraceCall& b,
                        const StepBytes& bytes_b, const std::vector<cases::RowPair>& pairs) {
  PairReport report;
  try {
    compare_known(a, bytes_a, b, bytes_b, pairs, report);
    return report;
  } catch (...) {
    report.not_judged = why_not_judged();
  }
  if (pairs.empty()) compare_bits(a, bytes_a, b, bytes_b, report);
  if (!pairs.empty()) report.differ = std::ssize(pairs);
  return report;
}

}  // namespace plumb::trace
