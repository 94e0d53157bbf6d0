// SPDX-License-Identifier: Apache-2.0
#include "bisect/cases/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "bisect/cases/neighbours.h"
#include "bisect/cases/smaller_values.h"
#include "bisect/search/minimal_part.h"
#include "cases/tensors/sort_by.h"

namespace plumb::bisect {

namespace {

constexpr int kProbesOfANumber = 12;
// Number of seeds that are tried for each smaller size.
constexpr int kSeeds = 3;
// Size limit (such as requests times steps) up to which a first pass tries smaller sizes, and up to
// which other seeds are tried.
constexpr double kSmall = 12;

class Shrinker {
 public:
  Shrinker(Candidate start, const Shrinkable& subject, Prober& prober)
      : start_(start), now_(std::move(start)), subject_(subject), prober_(prober) {}

  Shrunk run() {
    expect();
    climb();
    make_plain();
    settle();
    keep_less();
    settle();
    Shrunk shrunk{.smallest = now_};
    find_neighbours(shrunk, start_, subject_, prober_);
    shrunk.complete = !prober_.out_of_time();
    return shrunk;
  }

 private:
  Candidate with(const std::string& name, const std::string& value) const {
    Candidate candidate = now_;
    candidate[name] = value;
    return candidate;
  }

  bool take_first(const std::vector<Candidate>& candidates, const std::string& why) {
    const auto found = prober_.first_failing(candidates, why);
    if (found) take(candidates[*found], why);
    return found.has_value();
  }

  void take(const Candidate& smaller, const std::string& why) {
    prober_.take(now_, smaller, why);
    now_ = smaller;
    expect();
  }

  // Estimates the remaining probes, for the progress line: those for parameters that are not plain,
  // and one more for each parameter at the end.
  void expect() {
    int left = static_cast<int>(subject_.knobs.size());
    for (const Knob& one : subject_.knobs) {
      const std::string& value = now_.at(one.name);
      if (value == one.plainest()) continue;
      left += one.is_number() ? kProbesOfANumber : static_cast<int>(one.words.size()) / 2;
    }
    prober_.expect(left);
  }

  double size_of(const Candidate& candidate) const {
    double size = 1;
    for (const std::string& name : subject_.sizes) {
      size *= static_cast<double>(number_of(candidate.at(name)));
    }
    return size;
  }

  // All combinations of smaller values of the sizes (those that rungs() gives) with a product up to
  // `most`, smallest first. They are cheap compared with the current case.
  std::vector<Candidate> smaller_sizes(double most) const {
    std::vector<Candidate> all{now_};
    for (const std::string& name : subject_.sizes) {
      std::vector<Candidate> grown;
      for (const Candidate& one : all) {
        for (const std::int64_t value : rungs(knob(name).least, number_of(now_.at(name)))) {
          grown.push_back(one);
          grown.back()[name] = fmt::to_string(value);
        }
      }
      all = std::move(grown);
    }
    std::erase_if(all, [&](const Candidate& one) { return size_of(one) > most || one == now_; });
    cases::sort_by(all, [&](const Candidate& one) { return size_of(one); });
    return all;
  }

  // Tries sizes from small to large: small ones are cheap, and most failures show in them.
  void climb() {
    if (subject_.sizes.empty()) return;
    const std::string why = "small sizes first, because they take the least time";
    if (take_first(smaller_sizes(std::min(size_of(now_) / 4, kSmall)), why)) return;
    if (subject_.guess) take_first({*subject_.guess}, "only the steps up to the failure");
    take_first(smaller_sizes(size_of(now_) / 4), why);
    for (const std::string& name : subject_.sizes) {
      if (number_of(now_.at(name)) > knob(name).least) lower(knob(name));
    }
  }

  // Another seed gives another schedule of the same size, which may fail at a smaller size.
  void try_other_seeds() {
    if (subject_.seed.empty() || size_of(now_) <= 1 || std::exchange(tried_seeds_, true)) return;
    std::vector<Candidate> all;
    for (const Candidate& one : smaller_sizes(std::min(size_of(now_) - 1, kSmall))) {
      for (int seed = 1; seed <= kSeeds; ++seed) {
        all.push_back(one);
        all.back()[subject_.seed] = fmt::to_string(seed);
      }
    }
    take_first(all, "smaller sizes with another seed");
  }

  const Knob& knob(const std::string& name) const {
    return *std::find_if(subject_.knobs.begin(), subject_.knobs.end(),
                         [&](const Knob& one) { return one.name == name; });
  }

  // Finds the parameters that must keep a value other than the plainest, by resetting many at once.
  void make_plain() {
    std::vector<std::string> special;
    for (const Knob& one : subject_.knobs) {
      if (now_.at(one.name) != one.plainest()) special.push_back(one.name);
    }
    const auto others_plain = [&](const std::vector<std::string>& kept) {
      Candidate candidate = now_;
      for (const std::string& name : special) {
        if (std::find(kept.begin(), kept.end(), name) != kept.end()) continue;
        candidate[name] = knob(name).plainest();
      }
      return candidate;
    };
    const auto needed = minimal_part<std::string>(special, [&](const auto& parts) {
      std::vector<Candidate> candidates;
      for (const auto& part : parts) candidates.push_back(others_plain(part));
      return prober_.first_failing(candidates, "which parameters have to keep their values");
    });
    take(others_plain(needed), "all other parameters at their plainest values");
  }

  // Reduces one parameter after another, until a round changes nothing.
  void settle() {
    for (bool changed = true; changed && !prober_.out_of_time();) {
      changed = false;
      for (const Knob& one : subject_.knobs) {
        if (now_.at(one.name) == one.plainest()) continue;
        changed |= one.is_number() ? lower(one) : make_plainer(one);
      }
      const double size = size_of(now_);
      if (!changed) try_other_seeds();
      changed |= size_of(now_) < size;
    }
  }

  bool make_plainer(const Knob& one) {
    std::vector<Candidate> plainer;
    for (const std::string& word : one.words) {
      if (word == now_.at(one.name)) break;
      plainer.push_back(with(one.name, word));
    }
    return take_first(plainer, "a plainer " + one.name);
  }

  // Tries the smallest value, then searches by thirds, then by single steps: a smaller value may
  // fail although larger ones pass.
  bool lower(const Knob& one) {
    const std::string before = now_.at(one.name);
    const auto try_values = [&](const std::vector<std::int64_t>& values, const std::string& why) {
      std::vector<Candidate> candidates;
      for (const std::int64_t value : values) {
        candidates.push_back(with(one.name, fmt::to_string(value)));
      }
      return take_first(candidates, why);
    };
    const auto possible = [&](std::int64_t value) {
      return prober_.is_possible(with(one.name, fmt::to_string(value)));
    };
    if (try_values({one.least}, one.name + " at its smallest value")) return true;
    std::int64_t passes = one.least;
    for (;;) {
      const std::int64_t fails = number_of(now_.at(one.name));
      const auto between = values_between(passes, fails, one.worth_a_try, possible);
      if (between.empty()) break;
      const std::vector<std::int64_t> thirds = thirds_of(between);
      if (!try_values(thirds, one.name + " by thirds"))
        passes = thirds.back();
      else if (number_of(now_.at(one.name)) != thirds.front())
        passes = thirds.front();
    }
    const std::int64_t fails = number_of(now_.at(one.name));
    try_values(single_steps(one.least, fails, possible), one.name + " by single steps");
    return now_.at(one.name) != before;
  }

  // When sizes cannot be reduced further, removes single parts (requests, steps, rows) of the case.
  void keep_less() {
    if (!subject_.sizes.empty() && size_of(now_) <= 1) return;
    for (bool changed = true; changed && !prober_.out_of_time();) {
      changed = false;
      for (const KeepKnob& list : subject_.keeps) changed |= keep_less(list);
    }
    for (const KeepKnob& list : subject_.keeps) make_few(list);
  }

  // Tries to replace a list of kept parts by a smaller size without a list. The smaller case may
  // fail now, because other parts are gone.
  void make_few(const KeepKnob& list) {
    if (now_.at(list.name).empty()) return;
    std::vector<Candidate> candidates;
    const auto count = std::max<std::int64_t>(std::ssize(list.kept(now_)), 1);
    for (std::int64_t few = knob(list.size).least; few <= count; ++few) {
      candidates.push_back(with(list.size, fmt::to_string(few)));
      candidates.back()[list.name] = "";
    }
    take_first(candidates, "as small without " + list.name);
  }

  bool keep_less(const KeepKnob& list) {
    const auto keep = [&](const std::vector<std::int64_t>& numbers) {
      return with(list.name, list_text(numbers));
    };
    const std::vector<std::int64_t> all = list.kept(now_);
    const auto needed = minimal_part<std::int64_t>(all, [&](const auto& parts) {
      std::vector<Candidate> candidates;
      for (const auto& part : parts) candidates.push_back(keep(part));
      return prober_.first_failing(candidates, "fewer parts by " + list.name);
    });
    const Candidate before = now_;
    if (needed.size() < all.size()) take(keep(needed), "fewer parts by " + list.name);
    return now_ != before;
  }

  const Candidate start_;
  Candidate now_;  // the smallest case known to fail
  bool tried_seeds_ = false;
  const Shrinkable& subject_;
  Prober& prober_;
};

// Ratio of a neighbour's changed value to the original one. The neighbour with the largest ratio is
// changed least.
double share_left(const Neighbour& neighbour, const Candidate& smallest) {
  const auto before = as_number(smallest.at(neighbour.knob));
  const auto after = as_number(neighbour.value);
  if (!before || !after || *before <= 0) return 0.5;
  return static_cast<double>(*after) / static_cast<double>(*before);
}

}  // namespace

std::string Knob::plainest() const { return is_number() ? fmt::to_string(least) : words.front(); }

std::vector<std::string> Knob::less_plain() const {
  std::vector<std::string> values(words.begin() + 1, words.end());
  values.insert(values.end(), others.begin(), others.end());
  return values;
}

const Neighbour* Shrunk::passing() const {
  const Neighbour* best = nullptr;
  for (const Neighbour& one : neighbours) {
    if (one.said.seen != Seen::passes) continue;
    if (best == nullptr || share_left(one, smallest) > share_left(*best, smallest)) best = &one;
  }
  return best != nullptr || needed_plain.empty() ? best : &needed_plain.front();
}

Shrunk shrink(const Candidate& start, const Shrinkable& subject, Prober& prober) {
  return Shrinker(start, subject, prober).run();
}

}  // namespace plumb::bisect
