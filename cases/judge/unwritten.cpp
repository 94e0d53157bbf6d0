// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/unwritten.h"

#include <algorithm>
#include <cstddef>

#include "cases/judge/wrong_rows.h"

namespace plumb::cases {

namespace {

// Does every wrong element hold what was there before the launch? `what`: in words.
std::optional<std::string> left_alone(const WrongRows& view, std::string_view what) {
  const HostTensor& got = view.evidence.got;
  const std::byte poison{view.clues()->poison};
  const std::size_t size = size_of(got.spec().dtype);
  return all_are(view, what, [&](std::int64_t r, std::int64_t c) {
    const std::byte* bytes =
        got.bytes().data() + static_cast<std::size_t>(got.row_offset(r) + c) * size;
    return std::all_of(bytes, bytes + size, [&](std::byte b) { return b == poison; });
  });
}

// Zeros, and -1, are results too.
bool is_telling_poison(const WrongRows& view) {
  const std::uint8_t poison = view.clues()->poison;
  return poison != 0 && (poison != 0xff || is_float(view.evidence.got.spec().dtype));
}
bool was_poisoned(const WrongRows& view) {
  return view.clues() != nullptr && view.evidence.got.spec().starts_as.empty();
}

}  // namespace

std::optional<std::string> never_written(const WrongRows& view) {
  if (!was_poisoned(view) || !is_telling_poison(view)) return {};
  return left_alone(view, "still holds the poison: never written");
}

std::optional<std::string> as_before(const WrongRows& view) {
  if (!was_poisoned(view) || is_telling_poison(view)) return {};
  return left_alone(view, view.clues()->poison == 0 ? "is zero, as before the launch"
                                                    : "is -1, as before the launch");
}

std::optional<std::string> earlier_step(const WrongRows& view) {
  if (view.clues() == nullptr) return {};
  const HostTensor& got = view.evidence.got;
  for (const Clues::EarlierStep& step : view.clues()->earlier) {
    if (!step.stored.contains(got.spec().name)) continue;
    const HostTensor& then = step.stored.at(got.spec().name);
    if (then.rows() != got.original_rows() || then.columns() != got.columns()) continue;
    const auto holds = [&](std::int64_t r) {
      // Not to the last bit: another order of sums is as stale.
      double widest = 0;
      for (std::int64_t c = view.begin; c < view.end; ++c) {
        widest = std::max(widest, view.tolerance(r, c));
      }
      return all_columns(view, [&](std::int64_t c) {
        return equal(view.got(r, c), then.value(view.number(r), c), widest);
      });
    };
    if (nearly_all_rows(view, holds)) {
      return fmt::format("{} holds what {} stored", view.subject(), step.name);
    }
  }
  return {};
}

}  // namespace plumb::cases
