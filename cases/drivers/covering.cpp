// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/covering.h"

#include <set>
#include <tuple>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using CoveringRow = std::vector<int>;
// A pair to cover: a factor, its level, a later factor, its level.
using Pair = std::tuple<int, int, int, int>;

std::set<Pair> all_pairs(const std::vector<int>& levels) {
  std::set<Pair> pairs;
  const int factors = static_cast<int>(levels.size());
  for (int f = 0; f < factors; ++f) {
    for (int g = f + 1; g < factors; ++g) {
      for (int a = 0; a < levels[f]; ++a) {
        for (int b = 0; b < levels[g]; ++b) pairs.emplace(f, a, g, b);
      }
    }
  }
  return pairs;
}

template <class Action>
void for_each_pair(const CoveringRow& point, Action action) {
  const int factors = static_cast<int>(point.size());
  for (int f = 0; f < factors; ++f) {
    for (int g = f + 1; g < factors; ++g) action(Pair(f, point[f], g, point[g]));
  }
}

int newly_covered(const CoveringRow& point, const std::set<Pair>& open) {
  int count = 0;
  for_each_pair(point, [&](const Pair& pair) { count += static_cast<int>(open.count(pair)); });
  return count;
}

CoveringRow random_point(const std::vector<int>& levels, std::uint64_t seed) {
  CoveringRow point;
  for (std::size_t f = 0; f < levels.size(); ++f) {
    point.push_back(static_cast<int>(integer(seed, f, 0, levels[f] - 1)));
  }
  return point;
}

}  // namespace

std::vector<std::vector<int>> pairwise_points(const std::vector<int>& levels, std::uint64_t seed) {
  constexpr int kCandidates = 32;  // more candidates hardly shorten the array
  std::set<Pair> open = all_pairs(levels);
  std::vector<CoveringRow> points;
  std::uint64_t draw = 0;
  while (!open.empty()) {
    CoveringRow best;
    int most = 0;
    for (int i = 0; i < kCandidates; ++i) {
      CoveringRow candidate = random_point(levels, mix(seed, ++draw));
      // Put a pair that is not covered yet into the candidate, so that every round makes progress.
      const auto& [f, a, g, b] = *open.begin();
      candidate[static_cast<std::size_t>(f)] = a;
      candidate[static_cast<std::size_t>(g)] = b;
      const int covered = newly_covered(candidate, open);
      if (covered > most) {
        most = covered;
        best = candidate;
      }
    }
    for_each_pair(best, [&](const Pair& pair) { open.erase(pair); });
    points.push_back(best);
  }
  return points;
}

}  // namespace plumb::cases
