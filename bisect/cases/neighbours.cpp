// SPDX-License-Identifier: Apache-2.0
#include "bisect/cases/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bisect/cases/smaller_values.h"

namespace plumb::bisect {

namespace {

// Number of values of a parameter that are tried until one has a verdict.
constexpr int kTriesForAVerdict = 4;
// Number of less plain values of a parameter that are asked until one passes. The first value asked
// often fails alike: a kernel that ignores eps is right for one eps only.
constexpr int kOtherValues = 4;

class NeighbourSearch {
 public:
  NeighbourSearch(Shrunk& shrunk, const Candidate& start, const Shrinkable& subject, Prober& prober)
      : shrunk_(shrunk), start_(start), subject_(subject), prober_(prober) {}

  void run() {
    for (const Knob& one : subject_.knobs) {
      if (one.name != subject_.seed) ask_plainer(one);
    }
    for (const KeepKnob& list : subject_.keeps) {
      if (!now(list.name).empty()) keep(first_with_verdict(list.name, {""}, why_next(list.name)));
    }
    for (const Knob& one : subject_.knobs) {
      if (one.name != subject_.seed && !has_plainer_.contains(one.name)) ask_others(one);
    }
  }

 private:
  const std::string& now(const std::string& name) const { return shrunk_.smallest.at(name); }

  Candidate with(const std::string& name, const std::string& value) const {
    Candidate candidate = shrunk_.smallest;
    candidate[name] = value;
    return candidate;
  }

  bool is_possible(const Knob& one, std::int64_t number) const {
    return prober_.is_possible(with(one.name, fmt::to_string(number)));
  }

  static std::string why_next(const std::string& name) {
    return "next to the smallest case: another " + name;
  }

  void keep(std::optional<Neighbour> found) {
    if (found && found->said.seen != Seen::same) shrunk_.neighbours.push_back(std::move(*found));
  }

  // Plainer values of a parameter, the nearest first; empty if it has the plainest.
  std::vector<std::string> plainer_values(const Knob& one) const {
    const std::string& value = now(one.name);
    std::vector<std::string> plainer;
    if (value == one.plainest()) return plainer;
    if (!one.is_number()) {
      plainer.assign(one.words.begin(), std::find(one.words.begin(), one.words.end(), value));
    } else {
      const auto possible = [&](std::int64_t number) { return is_possible(one, number); };
      for (const std::int64_t number :
           values_between(one.least - 1, number_of(value), one.worth_a_try, possible)) {
        plainer.push_back(fmt::to_string(number));
      }
    }
    std::reverse(plainer.begin(), plainer.end());
    return plainer;
  }

  // The original value, and values that are less plain than now.
  std::vector<std::string> other_values(const Knob& one) const {
    const std::string& value = now(one.name);
    std::vector<std::string> others;
    const auto add = [&](const std::string& other) {
      const bool is_new = other != value && std::ranges::find(others, other) == others.end();
      if (is_new) others.push_back(other);
    };
    add(start_.at(one.name));
    if (!one.is_number()) {
      for (const std::string& word : one.less_plain()) add(word);
      return others;
    }
    const auto possible = [&](std::int64_t number) { return is_possible(one, number); };
    for (const std::int64_t number : larger_values(number_of(value), one.worth_a_try, possible)) {
      add(fmt::to_string(number));
    }
    return others;
  }

  // The smallest case with the first of these values of a parameter that has a verdict.
  std::optional<Neighbour> first_with_verdict(const std::string& name,
                                              const std::vector<std::string>& values,
                                              const std::string& why) {
    int tries = 0;
    for (const std::string& value : values) {
      const Candidate candidate = with(name, value);
      if (!prober_.is_possible(candidate)) continue;
      if (tries++ == kTriesForAVerdict) break;
      const Said said = prober_.ask(candidate, why);
      if (said.seen != Seen::cannot_say) return Neighbour{name, value, candidate, said};
    }
    return std::nullopt;
  }

  bool passes_with(const std::string& name, const std::string& value, const std::string& why) {
    const Candidate candidate = with(name, value);
    return prober_.is_possible(candidate) && prober_.ask(candidate, why).seen == Seen::passes;
  }

  // Parameters can be tied to each other (a rank is below the number of ranks): no plainer value is
  // possible alone. Then another parameter becomes plainest too, unless this alone lets the case
  // pass.
  std::optional<Neighbour> plainer_with_another(const Knob& one, const std::string& why) {
    std::vector<std::string> values = one.words;
    if (one.is_number()) {
      values = {fmt::to_string(number_of(now(one.name)) - 1), one.plainest()};
    } else {
      values.erase(std::ranges::find(values, now(one.name)), values.end());
    }
    int tries = 0;
    for (const Knob& other : subject_.knobs) {
      if (other.name == one.name || now(other.name) == other.plainest()) continue;
      bool is_asked = false;
      for (const std::string& value : values) {
        Candidate candidate = with(one.name, value);
        candidate[other.name] = other.plainest();
        if (!prober_.is_possible(candidate)) continue;
        if (tries++ == kTriesForAVerdict) return std::nullopt;
        if (!std::exchange(is_asked, true) && passes_with(other.name, other.plainest(), why)) break;
        const Said said = prober_.ask(candidate, why);
        if (said.seen != Seen::cannot_say) return Neighbour{one.name, value, candidate, said};
      }
    }
    return std::nullopt;
  }

  void ask_plainer(const Knob& one) {
    if (now(one.name) == one.plainest()) return;
    auto found = first_with_verdict(one.name, plainer_values(one), why_next(one.name));
    if (!found) found = plainer_with_another(one, why_next(one.name));
    if (found) has_plainer_.insert(one.name);
    keep(std::move(found));
  }

  // For a parameter that is as plain as possible: does the case pass with another value? A
  // parameter does not matter if its original value fails, and each other value that was asked.
  void ask_others(const Knob& one) {
    const std::string why = "at its plainest value: does " + one.name + " matter?";
    bool original_fails = false;
    int tries = 0;
    for (const std::string& value : other_values(one)) {
      if (!prober_.is_possible(with(one.name, value))) continue;
      if (tries++ == kOtherValues) break;
      auto found = first_with_verdict(one.name, {value}, why);
      if (!found) continue;
      if (found->said.seen == Seen::passes) {
        shrunk_.needed_plain.push_back(std::move(*found));
        return;
      }
      original_fails |= found->said.seen == Seen::same && value == start_.at(one.name);
    }
    if (original_fails) shrunk_.irrelevant.push_back(one.name);
  }

  Shrunk& shrunk_;
  const Candidate& start_;
  const Shrinkable& subject_;
  Prober& prober_;
  std::set<std::string> has_plainer_;  // parameters with a verdict on a plainer value
};

}  // namespace

void find_neighbours(Shrunk& shrunk, const Candidate& start, const Shrinkable& subject,
                     Prober& prober) {
  NeighbourSearch(shrunk, start, subject, prober).run();
}

}  // namespace plumb::bisect
