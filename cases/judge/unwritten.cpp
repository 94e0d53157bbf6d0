// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/unwritten.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cases/judge/wrong_rows.h"

namespace plumb::cases {

namespace {

// Poison is recognised only if no result looks like it. Zero and -1 may be results, and a u8 output
// may hold any byte.
bool is_telling_poison(const WrongRows& view) {
  const std::uint8_t poison = view.clues()->poison;
  const Dtype dtype = view.evidence.got.spec().dtype;
  return poison != 0 && dtype != Dtype::u8 && (poison != 0xff || is_float(dtype));
}
bool holds_poison(const WrongRows& view, std::int64_t row, std::int64_t column) {
  const HostTensor& got = view.evidence.got;
  const std::size_t size = size_of(got.spec().dtype);
  const std::byte* bytes =
      got.bytes().data() + static_cast<std::size_t>(got.row_offset(row) + column) * size;
  return std::all_of(bytes, bytes + size,
                     [&](std::byte b) { return b == std::byte{view.clues()->poison}; });
}
// Describes the wrong elements by `what` if all of them still hold the poison.
std::optional<std::string> left_alone(const WrongRows& view, std::string_view what) {
  return all_are(view, what,
                 [&](std::int64_t r, std::int64_t c) { return holds_poison(view, r, c); });
}
bool was_poisoned(const WrongRows& view) {
  return view.clues() != nullptr && view.evidence.got.spec().starts_as.empty();
}
struct WrongElementCount {
  std::int64_t all = 0, unwritten = 0;
};
WrongElementCount count_wrong(const WrongRows& view) {
  WrongElementCount count;
  for (const std::int64_t r : view.evidence.wrong_rows) {
    for (std::int64_t c = 0; c < view.end; ++c) {
      if (!view.wrong(r, c)) continue;
      ++count.all;
      count.unwritten += holds_poison(view, r, c);
    }
  }
  return count;
}
std::string unwritten_text(const WrongElementCount& wrong) {
  return fmt::format("{} of {} wrong elements {} {}", wrong.unwritten, wrong.all,
                     wrong.unwritten == 1 ? "was" : "were", kNeverWritten);
}

}  // namespace

bool row_holds_poison(const HostTensor& stored, std::int64_t row) {
  const Clues* clues = stored.spec().clues.get();
  if (clues == nullptr || clues->poison == 0) return false;
  const std::size_t size = size_of(stored.spec().dtype);
  const std::byte* bytes =
      stored.bytes().data() + static_cast<std::size_t>(stored.row_offset(row)) * size;
  return std::all_of(bytes, bytes + static_cast<std::size_t>(stored.columns()) * size,
                     [&](std::byte b) { return b == std::byte{clues->poison}; });
}

std::optional<std::string> never_written(const WrongRows& view) {
  if (!was_poisoned(view) || !is_telling_poison(view)) return {};
  const bool whole_rows = std::ranges::all_of(view.evidence.wrong_rows, [&](std::int64_t r) {
    return all_columns(view, [&](std::int64_t c) { return holds_poison(view, r, c); });
  });
  if (whole_rows) return fmt::format("{} was {}", view.subject(), kNeverWritten);
  const WrongElementCount wrong = count_wrong(view);
  if (wrong.unwritten == 0) return {};
  if (wrong.unwritten == wrong.all) return fmt::format("every wrong element was {}", kNeverWritten);
  const double most = kNearlyAll * static_cast<double>(wrong.all);
  if (static_cast<double>(wrong.unwritten) < most) return {};
  return unwritten_text(wrong);
}

std::optional<std::string> partly_written(const WrongRows& view) {
  if (!was_poisoned(view) || !is_telling_poison(view)) return {};
  const WrongElementCount wrong = count_wrong(view);
  if (wrong.unwritten == 0) return {};
  return unwritten_text(wrong);
}

std::string under_streams(std::string pattern, bool streams_are_early) {
  const std::size_t at = pattern.find(kNeverWritten);
  if (streams_are_early || at == std::string::npos) return pattern;
  return pattern.insert(at + kNeverWritten.size(), kOrTooEarly);
}

std::optional<std::string> as_before(const WrongRows& view) {
  if (!was_poisoned(view) || is_telling_poison(view)) return {};
  const std::uint8_t poison = view.clues()->poison;
  const bool byte = view.evidence.got.spec().dtype == Dtype::u8;
  return left_alone(view, fmt::format("is {}, as before the launch", poison == 0 ? "zero"
                                                                     : byte ? fmt::to_string(poison)
                                                                            : "-1"));
}

std::optional<std::string> earlier_step(const WrongRows& view) {
  if (view.clues() == nullptr) return {};
  const HostTensor& got = view.evidence.got;
  for (const Clues::EarlierStep& step : view.clues()->earlier) {
    if (!step.stored.contains(got.spec().name)) continue;
    const HostTensor& then = step.stored.at(got.spec().name);
    if (then.rows() != got.original_rows() || then.columns() != got.columns()) continue;
    const auto holds = [&](std::int64_t r) {
      // Uses the row's widest tolerance: a stale row may differ in the last bits by the order of
      // sums.
      double widest = 0;
      for (std::int64_t c = view.begin; c < view.end; ++c) {
        widest = std::max(widest, view.tolerance(r, c));
      }
      return all_columns(view, [&](std::int64_t c) {
        return equal(view.got(r, c), then.value(view.number(r), c), widest);
      });
    };
    if (nearly_all_rows(view, holds)) {
      return fmt::format("{} holds the result of {}", view.subject(), step.name);
    }
  }
  return {};
}

}  // namespace plumb::cases
