// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumb::cases {

namespace {

// Rounded down: 100 for all of them alone.
std::int64_t percent(const Match& match) {
  return match.wrong == 0 ? 0 : 100 * match.explained / match.wrong;
}

std::string subject_of(const Diagnosis& diagnosis) {
  std::vector<std::string> names;
  for (const Explanation& one : diagnosis.named) {
    names.push_back(fmt::format("{} ({})", one.name, one.stands_for));
  }
  return fmt::to_string(fmt::join(names, " or "));
}

// Not where it explains next to nothing.
std::string next_best(const Diagnosis& diagnosis) {
  constexpr double kWorthAWord = 0.1;
  if (!diagnosis.next || diagnosis.next->match.score() < kWorthAWord) return "";
  const Match& next = diagnosis.next->match;
  if (!diagnosis.named.empty() && next.is_exact()) {
    return fmt::format("; {} explains these too, but not the rest of the failure",
                       diagnosis.next->name);
  }
  if (diagnosis.named.empty() && next.is_exact()) {
    return fmt::format("; {} would leave the same, as might much else", diagnosis.next->name);
  }
  return fmt::format("; next best: {}, {} %", diagnosis.next->name, percent(next));
}

std::string left_out(const Diagnosis& diagnosis) {
  if (diagnosis.left_out == 0) return "";
  return fmt::format("; {} of {} known faults were not tried", diagnosis.left_out, diagnosis.known);
}

std::string reason(const Explanation& best) {
  if (best.match.wrong == 0) return "no value is wrong, and the findings are the same";
  return fmt::format("explains {} % of {} wrong values", percent(best.match), best.match.wrong);
}

}  // namespace

bool Diagnosis::names(const std::string& fault) const {
  return named.size() == 1 && named.front().name == fault;
}

bool Diagnosis::names_among_others(const std::string& fault) const {
  return named.size() > 1 && std::any_of(named.begin(), named.end(),
                                         [&](const Explanation& one) { return one.name == fault; });
}

std::string text_of(const Diagnosis& diagnosis) {
  if (!diagnosis.accident.empty()) return "looks like: " + diagnosis.accident;
  if (diagnosis.named.empty() && !diagnosis.pattern.empty()) {
    return "matches no fault of the library; " + diagnosis.pattern;
  }
  if (!diagnosis.not_tried.empty()) return "not diagnosed: " + diagnosis.not_tried;
  if (diagnosis.named.empty())
    return "no known pattern" + next_best(diagnosis) + left_out(diagnosis);
  return fmt::format("looks like: {}: {}{}", subject_of(diagnosis), reason(diagnosis.named.front()),
                     next_best(diagnosis));
}

}  // namespace plumb::cases
