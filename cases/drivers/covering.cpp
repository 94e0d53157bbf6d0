// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/covering.h"

#include <cstddef>
#include <utility>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using CoveringRow = std::vector<int>;
// A pair to cover: a factor, its level, a later factor, its level.
struct LevelPair {
  int f, a, g, b;
};

// The pairs that no point has covered yet.
class OpenPairs {
 public:
  explicit OpenPairs(const std::vector<int>& levels) : factors_(static_cast<int>(levels.size())) {
    for (const int count : levels) {
      first_.push_back(total_);
      total_ += count;
    }
    is_open_.resize(static_cast<std::size_t>(total_ * total_));
    for (int f = 0; f < factors_; ++f) {
      for (int a = 0; a < levels[static_cast<std::size_t>(f)]; ++a) add(levels, f, a);
    }
    open_ = pairs_.size();
  }

  bool empty() const { return open_ == 0; }
  // The first one in the order of factor, level, later factor, its level.
  const LevelPair& first() {
    while (!is_open_[index(pairs_[next_])]) ++next_;
    return pairs_[next_];
  }
  int count_in(const CoveringRow& point) const {
    int count = 0;
    each(point, [&](std::size_t i) { count += is_open_[i]; });
    return count;
  }
  void cover(const CoveringRow& point) {
    each(point, [&](std::size_t i) { open_ -= std::exchange(is_open_[i], char{0}); });
  }

 private:
  void add(const std::vector<int>& levels, int f, int a) {
    for (int g = f + 1; g < factors_; ++g) {
      for (int b = 0; b < levels[static_cast<std::size_t>(g)]; ++b) {
        pairs_.push_back({f, a, g, b});
        is_open_[index(pairs_.back())] = 1;
      }
    }
  }
  std::size_t index(const LevelPair& pair) const {
    const auto at = [&](int factor) { return first_[static_cast<std::size_t>(factor)]; };
    return static_cast<std::size_t>((at(pair.f) + pair.a) * total_ + at(pair.g) + pair.b);
  }
  template <class Action>
  void each(const CoveringRow& point, Action action) const {
    for (int f = 0; f < factors_; ++f) {
      const int a = point[static_cast<std::size_t>(f)];
      for (int g = f + 1; g < factors_; ++g) {
        action(index({f, a, g, point[static_cast<std::size_t>(g)]}));
      }
    }
  }

  int factors_, total_ = 0;
  std::vector<int> first_;        // of each factor: number of the levels of the factors before it
  std::vector<LevelPair> pairs_;  // in order
  std::vector<char> is_open_;     // by index()
  std::size_t open_ = 0, next_ = 0;
};

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
  OpenPairs open(levels);
  std::vector<CoveringRow> points;
  std::uint64_t draw = 0;
  while (!open.empty()) {
    CoveringRow best;
    int most = 0;
    for (int i = 0; i < kCandidates; ++i) {
      CoveringRow candidate = random_point(levels, mix(seed, ++draw));
      // Put a pair that is not covered yet into the candidate, so that every round makes progress.
      const auto& [f, a, g, b] = open.first();
      candidate[static_cast<std::size_t>(f)] = a;
      candidate[static_cast<std::size_t>(g)] = b;
      const int covered = open.count_in(candidate);
      if (covered > most) {
        most = covered;
        best = candidate;
      }
    }
    open.cover(best);
    points.push_back(best);
  }
  return points;
}

}  // namespace plumb::cases
