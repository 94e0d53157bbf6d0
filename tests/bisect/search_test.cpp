// SPDX-License-Identifier: Apache-2.0
//
// The searches alone, with known answers: they find the right element in few steps, also if some
// elements have no verdict.
#include "bisect/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bisect/search/culprits.h"
#include "bisect/search/repetition.h"

namespace plumb::bisect {
namespace search_test {

// Result of a search in a list of `count` elements. Element 0 is good, and all from `bad` on are
// bad.
struct Outcome {
  std::vector<std::string> candidates;
  int said = 0, unsaid = 0;
};
Outcome search(int count, int bad, const std::set<int>& unknown = {}) {
  Outcome outcome;
  const Order order = [](const std::string& known_bad, const std::vector<std::string>& goods) {
    int last = 0;
    for (const std::string& good : goods) last = std::max(last, std::stoi(good));
    std::vector<std::string> all;
    for (const std::size_t i : halving_order(static_cast<std::size_t>(last),
                                             static_cast<std::size_t>(std::stoi(known_bad)))) {
      all.push_back(std::to_string(i));
    }
    return all;
  };
  const AskAbout ask = [&](const std::string& key, std::size_t) {
    const int i = std::stoi(key);
    ++(unknown.contains(i) ? outcome.unsaid : outcome.said);
    if (unknown.contains(i)) return Verdict::cannot_say;
    return i >= bad ? Verdict::bad : Verdict::good;
  };
  outcome.candidates = first_bad(std::to_string(count - 1), {"0"}, order, ask).candidates;
  std::sort(outcome.candidates.begin(), outcome.candidates.end(),
            [](const auto& a, const auto& b) { return std::stoi(a) < std::stoi(b); });
  return outcome;
}

TEST(Search, EveryPlaceIsFoundInFewSteps) {
  for (const int count : {2, 3, 5, 64, 65, 100}) {
    const int most = steps_left(static_cast<std::size_t>(count - 1));
    for (int bad = 1; bad < count; ++bad) {
      const Outcome outcome = search(count, bad);
      EXPECT_EQ(outcome.candidates, std::vector<std::string>{std::to_string(bad)});
      EXPECT_LE(outcome.said, most) << count << " " << bad;
    }
  }
  EXPECT_EQ(steps_left(64), 6);
  EXPECT_EQ(steps_left(1), 0);
}

TEST(Search, OneThatCannotSayCostsOneStepAtMostAndLeavesAPairAtMost) {
  for (int bad = 1; bad < 65; ++bad) {
    for (int unknown = 1; unknown < 64; ++unknown) {
      const Outcome outcome = search(65, bad, {unknown});
      std::vector<std::string> right{std::to_string(bad)};
      if (unknown == bad) right.push_back(std::to_string(bad + 1));
      if (unknown == bad - 1) right.insert(right.begin(), std::to_string(unknown));
      EXPECT_EQ(outcome.candidates, right) << bad << " " << unknown;
      EXPECT_LE(outcome.said, 7) << bad << " " << unknown;
    }
  }
}

TEST(Search, ALongGapIsLeftInFewSteps) {
  std::set<int> gap;
  for (int i = 300; i < 700; ++i) gap.insert(i);
  const Outcome outcome = search(1024, 900, gap);
  EXPECT_EQ(outcome.candidates, std::vector<std::string>{"900"});
  EXPECT_LE(outcome.unsaid, 12);
  EXPECT_EQ(search(1024, 500, gap).candidates.size(), 401u) << "the gap, and what comes after it";
}

// A subject that fails at the given rate passes runs_until_good() runs in a row only with the given
// risk.
TEST(Repetition, EstimatesAreOnTheSafeSide) {
  EXPECT_NEAR(least_rate(1, 1, 0.05), 0.05, 1e-9);
  EXPECT_NEAR(least_rate(32, 32, 5e-7), std::pow(5e-7, 1.0 / 32), 1e-9);
  EXPECT_LT(least_rate(20, 100, 5e-7), 0.2);
  EXPECT_GT(least_rate(200, 1000, 5e-7), least_rate(20, 100, 5e-7));
  EXPECT_EQ(runs_until_good(1, 10, 5e-7), 1);
  for (const double rate : {0.9, 0.2, 0.01}) {
    const double runs = static_cast<double>(runs_until_good(rate, 10, 5e-7));
    EXPECT_LE(10 * std::pow(1 - rate, runs), 5e-7);
    EXPECT_GT(10 * std::pow(1 - rate, runs - 1), 5e-7) << "and not one more";
  }
}

// Returns failures at a given rate, from a seeded generator.
Repeater::Ask die(std::uint64_t seed, double rate, const std::string& signature = "s") {
  return [state = seed * 0x9e3779b97f4a7c15ull + 1, rate, signature]() mutable {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    Answer answer;
    const bool fails = static_cast<double>(state >> 11) / 9007199254740992.0 < rate;
    answer.verdict = fails ? Verdict::bad : Verdict::good;
    if (fails) answer.signature = signature;
    return answer;
  };
}

TEST(Repetition, TheRateIsNeverOverestimatedAndVerdictsAreRight) {
  for (const double rate : {0.2, 0.6, 0.95, 1.0}) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      Repeater repeater(10, 0);
      EXPECT_EQ(repeater.measure(die(seed, rate)).answer.verdict, Verdict::bad);
      EXPECT_LE(repeater.least(), rate);
      EXPECT_GT(repeater.least(), rate / 5) << "or every verdict takes too long";
      EXPECT_EQ(repeater.verdict(die(seed + 1000, rate)).answer.verdict, Verdict::bad);
      const Repeated good = repeater.verdict(die(seed, 0));
      EXPECT_EQ(good.answer.verdict, Verdict::good);
      EXPECT_EQ(good.runs, repeater.runs());
    }
  }
}

TEST(Repetition, WhatNeverFailsIsGoodAndAnotherFailureCannotSay) {
  Repeater repeater(10, 0);
  EXPECT_EQ(repeater.measure(die(1, 0)).answer.verdict, Verdict::good);
  repeater.measure(die(1, 1));
  const Answer other = repeater.verdict(die(1, 1, "other")).answer;
  EXPECT_EQ(other.verdict, Verdict::cannot_say);
  EXPECT_EQ(other.reason, "fails in another way: other");
  EXPECT_EQ(repeater.verdict(die(1, 1, "other"), true).answer.verdict, Verdict::bad);
  Repeater known(10, 3);
  EXPECT_EQ(known.measure(die(1, 1)).runs, 1);
  EXPECT_EQ(known.verdict(die(1, 0)).runs, 3);
}

TEST(Repetition, SaysHowManyPassesMakeAnAnswerGood) {
  Repeater known(10, 3), certain(10, 1), measured(10, 0);
  known.measure(die(1, 1));
  EXPECT_EQ(known.text(), "3 passes in a row make an answer good (--repeat)");
  certain.measure(die(1, 1));
  EXPECT_EQ(certain.text(), "1 pass makes an answer good (--repeat)");
  measured.measure(die(1, 1));
  EXPECT_TRUE(measured.text().starts_with("failure rate at least 63.")) << measured.text();
  EXPECT_NE(measured.text().find(" % (32 of 32 runs): 17 passes in a row make an answer good"),
            std::string::npos)
      << measured.text();
}

TEST(Repetition, AnEndThatFailsAndCannotSayByTurnsIsUndecided) {
  int n = 0;
  Repeater repeater(10, 0);
  EXPECT_THROW(repeater.measure([&] {
    Answer answer;
    answer.verdict = n++ % 2 == 0 ? Verdict::bad : Verdict::cannot_say;
    return answer;
  }),
               Undecided);
}

Culprits culprits(std::size_t count, const std::function<bool(const std::set<std::size_t>&)>& fails,
                  int* asked = nullptr) {
  return find_culprits(count, [&](const Switches& on) {
    if (asked != nullptr) ++*asked;
    return fails({on.begin(), on.end()}) ? Verdict::bad : Verdict::good;
  });
}

TEST(Culprits, EveryOneIsFoundAndNoOther) {
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = a; b < 8; ++b) {
      const Culprits found =
          culprits(8, [&](const auto& on) { return on.contains(a) || on.contains(b); });
      std::set<Switches> groups(found.groups.begin(), found.groups.end());
      EXPECT_EQ(groups, (std::set<Switches>{{a}, {b}}));
      EXPECT_EQ(found.others.size(), a == b ? 7u : 6u);
      EXPECT_EQ(found.of_others, Verdict::good);
    }
  }
  EXPECT_EQ(culprits(1, [](const auto&) { return true; }).groups, std::vector<Switches>{{0}});
}

TEST(Culprits, OneAmongManyTakesFewQuestions) {
  int asked = 0;
  const Culprits found = culprits(64, [](const auto& on) { return on.contains(37); }, &asked);
  EXPECT_EQ(found.groups, std::vector<Switches>{{37}});
  EXPECT_LE(asked, 2 * 6 + 2);
}

TEST(Culprits, ThoseThatFailOnlyTogetherAreAGroup) {
  const Culprits found = culprits(
      8, [](const auto& on) { return (on.contains(1) && on.contains(6)) || on.contains(3); });
  std::set<Switches> groups(found.groups.begin(), found.groups.end());
  EXPECT_EQ(groups, (std::set<Switches>{{1, 6}, {3}}));
  const Culprits three = culprits(
      8, [](const auto& on) { return on.contains(0) && on.contains(4) && on.contains(7); });
  EXPECT_EQ(three.groups, (std::vector<Switches>{{0, 4, 7}}));
}

TEST(Culprits, CombinationsThatCannotSayAreCounted) {
  const Culprits found = find_culprits(4, [](const Switches& on) {
    const std::set<std::size_t> set(on.begin(), on.end());
    if (set.contains(2)) return Verdict::bad;
    return set.contains(0) ? Verdict::cannot_say : Verdict::good;
  });
  EXPECT_EQ(found.groups, std::vector<Switches>{{2}});
  EXPECT_EQ(found.of_others, Verdict::cannot_say);
  EXPECT_GE(found.unsaid, 1u);
}

}  // namespace search_test
}  // namespace plumb::bisect
