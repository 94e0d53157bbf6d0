// SPDX-License-Identifier: Apache-2.0
#include "bisect/culprits.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace plumb::bisect {

namespace {

Switches without(const Switches& all, const Switches& some) {
  Switches left;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(left));
  return left;
}

std::vector<Switches> split(const Switches& all, std::size_t parts) {
  std::vector<Switches> chunks;
  for (std::size_t i = 0; i < parts; ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(all.size() * i / parts),
               end = static_cast<std::ptrdiff_t>(all.size() * (i + 1) / parts);
    chunks.emplace_back(all.begin() + begin, all.begin() + end);
  }
  return chunks;
}

// The first of them that fails.
const Switches* first_that_fails(const std::vector<Switches>& sets,
                                 const std::function<bool(const Switches&)>& fails) {
  const auto found = std::find_if(sets.begin(), sets.end(), fails);
  return found == sets.end() ? nullptr : &*found;
}

// Zeller's ddmin: a part of `failing` that fails, and does not without any one of its members.
Switches minimal(Switches failing, const std::function<bool(const Switches&)>& fails) {
  for (std::size_t parts = 2; failing.size() > 1;) {
    parts = std::min(parts, failing.size());
    const std::vector<Switches> chunks = split(failing, parts);
    std::vector<Switches> complements;
    for (const Switches& chunk : chunks) complements.push_back(without(failing, chunk));
    if (const Switches* chunk = first_that_fails(chunks, fails)) {
      failing = Switches(*chunk);
      parts = 2;
    } else if (const Switches* rest = first_that_fails(complements, fails)) {
      failing = Switches(*rest);
      parts = std::max<std::size_t>(2, parts - 1);
    } else if (parts == failing.size()) {
      break;
    } else {
      parts *= 2;
    }
  }
  return failing;
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
  found.others.resize(count);
  std::iota(found.others.begin(), found.others.end(), std::size_t{0});
  while (fails(found.others)) {
    found.groups.push_back(minimal(found.others, fails));
    found.others = without(found.others, found.groups.back());
  }
  if (unsaid.contains(found.others)) found.of_others = Verdict::cannot_say;
  found.unsaid = unsaid.size();
  return found;
}

}  // namespace plumb::bisect
