// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumb::cases {

namespace {

// Percentage of the wrong values that the hypothesis explains. Rounded down, so that 100 means all.
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

// Text about the next best hypothesis; "" if it explains less than 10 %.
std::string next_best(const Diagnosis& diagnosis) {
  constexpr double kWorthAWord = 0.1;
  if (!diagnosis.next || diagnosis.next->match.score() < kWorthAWord) return "";
  const Match& next = diagnosis.next->match;
  if (!diagnosis.named.empty() && next.is_exact()) {
    return fmt::format("; {} explains these values too, but not the rest of the failure",
                       diagnosis.next->name);
  }
  if (diagnosis.named.empty() && next.is_exact()) {
    return fmt::format("; closest fault: {} (would look the same, but the evidence is too little)",
                       diagnosis.next->name);
  }
  if (diagnosis.named.empty() && next.explained == next.wrong) {
    return fmt::format(
        "; closest fault: {} (explains every wrong value, but {} right values would "
        "be wrong too)",
        diagnosis.next->name, next.invented);
  }
  return fmt::format("; {}: {} (explains {} %{})",
                     diagnosis.named.empty() ? "closest fault" : "next best", diagnosis.next->name,
                     percent(next), diagnosis.named.empty() ? ", too little" : "");
}

std::string left_out(const Diagnosis& diagnosis) {
  if (diagnosis.left_out == 0) return "";
  return fmt::format("; {} of {} known faults were not tried", diagnosis.left_out, diagnosis.known);
}

std::string reason(const Explanation& best) {
  if (best.match.wrong == 0) return "no value is wrong, and the fault gives the same findings";
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
    return fmt::format("{}; {}", kNoFault, diagnosis.pattern);
  }
  if (!diagnosis.not_tried.empty()) return "not diagnosed: " + diagnosis.not_tried;
  if (diagnosis.named.empty())
    return fmt::format("{}{}{}", kNoFault, next_best(diagnosis), left_out(diagnosis));
  return fmt::format("looks like: {}: {}{}", subject_of(diagnosis), reason(diagnosis.named.front()),
                     next_best(diagnosis));
}

}  // namespace plumb::cases
