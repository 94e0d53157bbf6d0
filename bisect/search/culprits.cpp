// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/culprits.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "bisect/search/minimal_part.h"

namespace plumb::bisect {

namespace {

Switches without(const Switches& all, const Switches& some) {
  Switches left;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(left));
  return left;
}

}  // namespace

Culprits find_culprits(std::size_t count, const AskSwitches& ask) {
  Culprits found;
  std::set<Switches> unsaid;
  const auto fails = [&](const Switches& on) {
    const Verdict verdict = on.empty() ? Verdict::good : ask(on);
    if (verdict == Verdict::cannot_say) unsaid.insert(on);
    return verdict == Verdict::bad;
  };
  const auto first_failing = [&](const std::vector<Switches>& sets) -> std::optional<std::size_t> {
    const auto first = std::find_if(sets.begin(), sets.end(), fails);
    if (first == sets.end()) return std::nullopt;
    return static_cast<std::size_t>(first - sets.begin());
  };
  found.others.resize(count);
  std::iota(found.others.begin(), found.others.end(), std::size_t{0});
  while (fails(found.others)) {
    found.groups.push_back(minimal_part<std::size_t>(found.others, first_failing));
    found.others = without(found.others, found.groups.back());
  }
  if (unsaid.contains(found.others)) found.of_others = Verdict::cannot_say;
  found.unsaid = unsaid.size();
  return found;
}

}  // namespace plumb::bisect
