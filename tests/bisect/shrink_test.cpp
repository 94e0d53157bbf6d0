// SPDX-License-Identifier: Apache-2.0
//
// The search of plumb bisect case on artificial failures: the smallest case, its neighbours, and
// cases that must not be asked.
#include "bisect/cases/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "bisect/cases/smaller_values.h"
#include "bisect/search/minimal_part.h"
#include "decode/schedule/keep_list.h"

namespace plumb::bisect {

namespace shrink_test {

using Fails = std::function<bool(const Candidate&)>;

std::int64_t at(const Candidate& candidate, const char* name) {
  return number_of(candidate.at(name));
}

struct Bench {
  Fails fails;
  std::function<bool(const Candidate&)> is_possible = [](const Candidate&) { return true; };
  int jobs = 1;
  std::vector<Candidate> asked = {};

  Shrunk shrink(const Candidate& start, const Shrinkable& subject) {
    Prober prober({.ask = [this](const Candidate& one) -> Said {
                     return {fails(one) ? Seen::same : Seen::passes, "", 0};
                   },
                   .is_possible = is_possible,
                   .heard = [this](const Candidate& one, const Said&,
                                   const std::string&) { asked.push_back(one); },
                   .jobs = jobs});
    return bisect::shrink(start, subject, prober);
  }
};

Shrinkable three_numbers() {
  return {
      .knobs = {{.name = "a", .least = 1}, {.name = "b", .least = 0}, {.name = "c", .least = 1}}};
}

TEST(Shrinking, FindsTheLeastOfEveryParameterThatMatters) {
  Bench bench{[](const Candidate& one) { return at(one, "a") >= 17 && at(one, "c") >= 3; }};
  const Shrunk shrunk = bench.shrink({{"a", "5000"}, {"b", "77"}, {"c", "8"}}, three_numbers());
  EXPECT_EQ(shrunk.smallest, (Candidate{{"a", "17"}, {"b", "0"}, {"c", "3"}}));
  EXPECT_EQ(shrunk.irrelevant, std::vector<std::string>{"b"});
  EXPECT_TRUE(shrunk.complete);
  ASSERT_NE(shrunk.passing(), nullptr);
  EXPECT_EQ(shrunk.passing()->knob, "a");  // 17 to 16 is a smaller change than 3 to 2
  EXPECT_EQ(shrunk.passing()->value, "16");
  EXPECT_EQ(shrunk.neighbours.size(), 2u);
}

TEST(Shrinking, DoesNotTakeForGrantedThatWhatIsLargerFails) {
  // 3 fails, 4 to 39 pass.
  Bench bench{[](const Candidate& one) { return at(one, "a") == 3 || at(one, "a") >= 40; }};
  const Shrunk shrunk = bench.shrink({{"a", "100"}, {"b", "0"}, {"c", "1"}}, three_numbers());
  EXPECT_EQ(at(shrunk.smallest, "a"), 3);
}

TEST(Shrinking, SkipsWhatIsNoCaseWithoutAsking) {
  Bench bench{[](const Candidate& one) { return at(one, "a") >= 48; }};
  bench.is_possible = [](const Candidate& one) { return at(one, "a") % 16 == 0; };
  const Shrunk shrunk = bench.shrink({{"a", "1024"}, {"b", "0"}, {"c", "1"}}, three_numbers());
  EXPECT_EQ(at(shrunk.smallest, "a"), 48);
  EXPECT_EQ(shrunk.passing()->value, "32");
  for (const Candidate& one : bench.asked) EXPECT_EQ(at(one, "a") % 16, 0);
}

TEST(Shrinking, PrefersPlainWordsAndKeepsThoseThatMatter) {
  Shrinkable subject{.knobs = {{.name = "traffic", .words = {"steady", "grow", "random"}},
                               {.name = "lengths", .words = {"equal", "mixed", "random"}}}};
  Bench bench{[](const Candidate& one) { return one.at("traffic") != "steady"; }};
  const Shrunk shrunk = bench.shrink({{"traffic", "random"}, {"lengths", "random"}}, subject);
  EXPECT_EQ(shrunk.smallest, (Candidate{{"traffic", "grow"}, {"lengths", "equal"}}));
  EXPECT_EQ(shrunk.passing()->value, "steady");
  EXPECT_EQ(shrunk.irrelevant, std::vector<std::string>{"lengths"});
}

// A parameter is not called irrelevant if its original value passes in the smallest case, which
// depends on the other parameter.
TEST(Shrinking, SaysOnlyOfWhatWasAskedThatItDoesNotMatter) {
  Shrinkable subject{.knobs = {{.name = "a", .least = 1}, {.name = "b", .least = 1}}};
  Bench bench{[](const Candidate& one) {
    const bool large = at(one, "a") == 9 && at(one, "b") == 9;
    return large || (at(one, "b") == 1 && at(one, "a") < 9);
  }};
  const Shrunk shrunk = bench.shrink({{"a", "9"}, {"b", "9"}}, subject);
  EXPECT_EQ(shrunk.smallest, (Candidate{{"a", "1"}, {"b", "1"}}));
  EXPECT_TRUE(shrunk.irrelevant.empty());
}

// The failure needs a single token and forward order. Both are plainest values, so that nothing
// plainer can pass.
TEST(Shrinking, NamesPlainValuesThatTheFailureNeeds) {
  Shrinkable subject{.knobs = {{.name = "tokens", .least = 1},
                               {.name = "b", .least = 0, .worth_a_try = {0, 3}},
                               {.name = "order", .words = {"forward"}, .others = {"reverse"}}}};
  Bench bench{
      [](const Candidate& one) { return at(one, "tokens") == 1 && one.at("order") == "forward"; }};
  bench.is_possible = [](const Candidate& one) { return at(one, "tokens") != 2; };
  // The start has more tokens, and fails in the bench only because it is taken for granted.
  const Shrunk shrunk = bench.shrink({{"tokens", "24"}, {"b", "7"}, {"order", "forward"}}, subject);
  EXPECT_EQ(shrunk.smallest, (Candidate{{"tokens", "1"}, {"b", "0"}, {"order", "forward"}}));
  ASSERT_EQ(shrunk.needed_plain.size(), 2u);
  EXPECT_EQ(shrunk.needed_plain[0].knob, "tokens");
  EXPECT_EQ(shrunk.needed_plain[0].value, "24");
  EXPECT_EQ(shrunk.needed_plain[1].knob, "order");
  EXPECT_EQ(shrunk.needed_plain[1].value, "reverse");
  EXPECT_EQ(shrunk.irrelevant, std::vector<std::string>{"b"});
  ASSERT_NE(shrunk.passing(), nullptr);  // nothing plainer passes
  EXPECT_EQ(shrunk.passing()->knob, "tokens");
}

// The failure needs another value than 0, and the first values asked are others too.
TEST(Shrinking, AsksSeveralValuesUntilOnePasses) {
  Shrinkable subject{
      .knobs = {{.name = "eps", .words = {"1e-6"}, .others = {"0.5", "0.1", "0"}},
                {.name = "order", .words = {"forward"}, .others = {"reverse", "random"}}}};
  Bench bench{[](const Candidate& one) { return one.at("eps") != "0"; }};
  const Shrunk shrunk = bench.shrink({{"eps", "1e-6"}, {"order", "forward"}}, subject);
  ASSERT_EQ(shrunk.needed_plain.size(), 1u);
  EXPECT_EQ(shrunk.needed_plain[0].knob, "eps");
  EXPECT_EQ(shrunk.needed_plain[0].value, "0");
}

// Columns that are no multiple of 8 fail. Below 17 columns there is no case, so that only more
// columns can pass.
TEST(Shrinking, AsksLargerNumbersWhereNoSmallerOneIsPossible) {
  Shrinkable subject{.knobs = {{.name = "columns", .least = 1}, {.name = "b", .least = 0}}};
  Bench bench{[](const Candidate& one) { return at(one, "columns") % 8 != 0; }};
  bench.is_possible = [](const Candidate& one) { return at(one, "columns") >= 17; };
  const Shrunk shrunk = bench.shrink({{"columns", "300"}, {"b", "3"}}, subject);
  EXPECT_EQ(shrunk.smallest, (Candidate{{"columns", "17"}, {"b", "0"}}));
  ASSERT_EQ(shrunk.needed_plain.size(), 1u);
  EXPECT_EQ(shrunk.needed_plain[0].knob, "columns");
  EXPECT_EQ(shrunk.needed_plain[0].value, "32");
  EXPECT_EQ(shrunk.irrelevant, std::vector<std::string>{"b"});
}

// One rank of two is no case with rank 1: the number of ranks becomes smaller together with it.
TEST(Shrinking, ChangesParametersTogetherThatAreTiedToEachOther) {
  Shrinkable subject{.knobs = {{.name = "ranks", .least = 1}, {.name = "rank", .least = 0}}};
  Prober prober(
      {.ask = [](const Candidate& one) -> Said {
         if (at(one, "rank") == 1) return {Seen::same, "", 0};
         return {at(one, "ranks") > 1 ? Seen::otherwise : Seen::passes, "", 0};
       },
       .is_possible = [](const Candidate& one) { return at(one, "rank") < at(one, "ranks"); }});
  const Shrunk shrunk = bisect::shrink({{"ranks", "8"}, {"rank", "1"}}, subject, prober);
  EXPECT_EQ(shrunk.smallest, (Candidate{{"ranks", "2"}, {"rank", "1"}}));
  ASSERT_EQ(shrunk.neighbours.size(), 2u);
  EXPECT_EQ(shrunk.neighbours[0].knob, "ranks");
  EXPECT_EQ(shrunk.neighbours[0].candidate, (Candidate{{"ranks", "1"}, {"rank", "0"}}));
  EXPECT_EQ(shrunk.neighbours[1].knob, "rank");
}

// 8 columns need pages of 1, with which every number of columns passes.
TEST(Shrinking, DoesNotNameAParameterForTheEffectOfAnother) {
  Shrinkable subject{.knobs = {{.name = "columns", .least = 8}, {.name = "page", .least = 1}}};
  Bench bench{[](const Candidate& one) { return at(one, "page") == 32; }};
  bench.is_possible = [](const Candidate& one) {
    return at(one, "columns") >= 16 || at(one, "page") == 1;
  };
  const Shrunk shrunk = bench.shrink({{"columns", "64"}, {"page", "32"}}, subject);
  EXPECT_EQ(shrunk.smallest, (Candidate{{"columns", "16"}, {"page", "32"}}));
  ASSERT_EQ(shrunk.neighbours.size(), 1u);
  EXPECT_EQ(shrunk.neighbours[0].knob, "page");
  EXPECT_EQ(shrunk.irrelevant, std::vector<std::string>{"columns"});
}

// 4 and 3 cannot be run: the verdict next to 5 is that of 2.
TEST(Shrinking, LeavesOutNeighboursWithoutAVerdict) {
  Shrinkable subject{.knobs = {{.name = "a", .least = 1}, {.name = "w", .words = {"x", "y"}}}};
  Prober prober({.ask = [](const Candidate& one) -> Said {
    const std::int64_t a = at(one, "a");
    if (a == 3 || a == 4 || one.at("w") == "x") return {Seen::cannot_say, "refused", 0};
    return {a >= 5 ? Seen::same : Seen::passes, "", 0};
  }});
  const Shrunk shrunk = bisect::shrink({{"a", "9"}, {"w", "y"}}, subject, prober);
  EXPECT_EQ(shrunk.smallest, (Candidate{{"a", "5"}, {"w", "y"}}));
  ASSERT_EQ(shrunk.neighbours.size(), 1u);
  EXPECT_EQ(shrunk.neighbours[0].knob, "a");
  EXPECT_EQ(shrunk.neighbours[0].value, "2");
}

TEST(Shrinking, TriesOtherSeedsForFewer) {
  Shrinkable subject{.knobs = {{.name = "requests", .least = 1},
                               {.name = "steps", .least = 1},
                               {.name = "seed", .words = {"1", "7"}}},
                     .sizes = {"requests", "steps"},
                     .seed = "seed"};
  Bench bench{[](const Candidate& one) {
    const std::int64_t least = one.at("seed") == "3" ? 2 : 30;
    return at(one, "requests") >= least && at(one, "steps") >= 2;
  }};
  const Shrunk shrunk = bench.shrink({{"requests", "64"}, {"steps", "50"}, {"seed", "7"}}, subject);
  EXPECT_EQ(shrunk.smallest, (Candidate{{"requests", "2"}, {"steps", "2"}, {"seed", "3"}}));
  // Expensive sizes are not probed: 64 requests in 50 steps take long.
  for (const Candidate& one : bench.asked) {
    EXPECT_LE(at(one, "requests") * at(one, "steps"), 64 * 50 / 2);
  }
}

std::vector<std::int64_t> kept(std::int64_t first, std::int64_t last, const std::string& list) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = first; i <= last; ++i) {
    if (cases::KeepList::from(list).keeps(i)) numbers.push_back(i);
  }
  return numbers;
}

// Parts of a schedule: requests are numbered from 1, steps from 0.
Shrinkable schedule() {
  return {.knobs = {{.name = "requests", .least = 1}, {.name = "steps", .least = 1}},
          .sizes = {"requests", "steps"},
          .keeps = {{"keep_steps", "steps",
                     [](const Candidate& one) {
                       return kept(0, at(one, "steps") - 1, one.at("keep_steps"));
                     }},
                    {"keep_requests", "requests", [](const Candidate& one) {
                       return kept(1, at(one, "requests"), one.at("keep_requests"));
                     }}}};
}

bool keeps(const Candidate& one, const char* list, std::int64_t number) {
  return cases::KeepList::from(one.at(list)).keeps(number);
}

// The failure needs at least eight requests, of which the third and the fifth are kept, and the
// last of four steps.
TEST(Shrinking, KeepsPartsWhereNumbersCannotBeReduced) {
  Bench bench{[](const Candidate& one) {
    return at(one, "requests") >= 8 && at(one, "steps") >= 4 && keeps(one, "keep_requests", 3) &&
           keeps(one, "keep_requests", 5) && keeps(one, "keep_steps", 3);
  }};
  const Shrunk shrunk = bench.shrink(
      {{"requests", "20"}, {"steps", "9"}, {"keep_requests", ""}, {"keep_steps", ""}}, schedule());
  EXPECT_EQ(shrunk.smallest,
            (Candidate{
                {"requests", "8"}, {"steps", "4"}, {"keep_requests", "3,5"}, {"keep_steps", "3"}}));
  // With all parts the case fails alike.
  std::vector<std::string> names;
  for (const Neighbour& one : shrunk.neighbours) names.push_back(one.knob);
  EXPECT_EQ(names, (std::vector<std::string>{"requests", "steps"}));
}

// Five steps are needed only as long as requests are kept. After these are removed, one step is
// enough.
TEST(Shrinking, PrefersFewToAPartOfMany) {
  Bench bench{[](const Candidate& one) {
    const bool idle = one.at("keep_requests") == "none";
    return at(one, "requests") >= 2 && (idle || at(one, "steps") >= 5) &&
           keeps(one, "keep_steps", idle ? at(one, "steps") - 1 : 4);
  }};
  const Shrunk shrunk = bench.shrink(
      {{"requests", "2"}, {"steps", "9"}, {"keep_requests", ""}, {"keep_steps", ""}}, schedule());
  EXPECT_EQ(shrunk.smallest,
            (Candidate{
                {"requests", "2"}, {"steps", "1"}, {"keep_requests", "none"}, {"keep_steps", ""}}));
  ASSERT_FALSE(shrunk.neighbours.empty());
  EXPECT_EQ(shrunk.neighbours.back().knob, "keep_requests");  // with all of them it passes
}

TEST(Shrinking, FindsTheSameWithAnyNumberOfJobs) {
  const auto fails = [](const Candidate& one) {
    return (at(one, "a") * 7 + at(one, "c")) % 5 < 3 && at(one, "a") > 6;
  };
  const Candidate start{{"a", "900"}, {"b", "5"}, {"c", "41"}};
  Bench one{fails};
  const Shrunk alone = one.shrink(start, three_numbers());
  for (const int jobs : {2, 3, 8}) {
    Bench many{fails};
    many.jobs = jobs;
    EXPECT_EQ(many.shrink(start, three_numbers()).smallest, alone.smallest) << jobs;
  }
}

TEST(Shrinking, EndsWhenTheTimeIsOver) {
  Prober prober({.ask = [](const Candidate&) -> Said {
                   std::this_thread::sleep_for(std::chrono::milliseconds(30));
                   return {Seen::same, "", 0.03};
                 },
                 .seconds = 0.02});
  const Shrunk shrunk = shrink({{"a", "9"}, {"b", "9"}, {"c", "9"}}, three_numbers(), prober);
  EXPECT_FALSE(shrunk.complete);
  EXPECT_EQ(prober.asked(), 1);
}

TEST(Probers, AskEachOnceAndManyAtATime) {
  std::mutex mutex;
  std::multiset<std::string> asked;
  std::atomic<int> running = 0, most = 0;
  Prober prober({.ask = [&](const Candidate& one) -> Said {
                   most = std::max<int>(most, ++running);
                   std::this_thread::sleep_for(std::chrono::milliseconds(20));
                   --running;
                   const std::lock_guard lock(mutex);
                   asked.insert(one.at("a"));
                   return {one.at("a") == "3" ? Seen::same : Seen::otherwise, "", 0};
                 },
                 .jobs = 2});
  std::vector<Candidate> all;
  for (const char* value : {"1", "2", "1", "3", "4", "5"}) all.push_back({{"a", value}});
  EXPECT_EQ(prober.first_failing(all, ""), 3u);
  EXPECT_EQ(prober.first_failing(all, ""), 3u);
  EXPECT_EQ(most, 2);
  EXPECT_EQ(asked, (std::multiset<std::string>{"1", "2", "3", "4"}));
  EXPECT_EQ(prober.asked(), 4);
}

TEST(Probers, HandOnWhatStopsAProbe) {
  Prober prober(
      {.ask = [](const Candidate&) -> Said { throw std::runtime_error("no processes"); }});
  EXPECT_THROW(prober.fails({}, ""), std::runtime_error);
}

TEST(MinimalParts, AreMinimal) {
  const auto needs = [](std::set<int> needed) {
    return [needed](const std::vector<std::vector<int>>& parts) -> std::optional<std::size_t> {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::set<int> part(parts[i].begin(), parts[i].end());
        if (std::includes(part.begin(), part.end(), needed.begin(), needed.end())) return i;
      }
      return std::nullopt;
    };
  };
  std::vector<int> all(50);
  for (int i = 0; i < 50; ++i) all[static_cast<std::size_t>(i)] = i;
  for (const std::set<int>& needed :
       {std::set<int>{}, {0}, {49}, {7, 8}, {0, 49}, {3, 17, 31}, {1, 2, 3, 4, 5, 30}}) {
    EXPECT_EQ(minimal_part<int>(all, needs(needed)),
              std::vector<int>(needed.begin(), needed.end()));
  }
}

TEST(SmallerValues, AreAllOfANarrowRangeAndSomeOfAWideOne) {
  const auto any = [](std::int64_t) { return true; };
  EXPECT_EQ(values_between(1, 5, {}, any), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_TRUE(values_between(4, 5, {3, 9}, any).empty());
  const auto wide = values_between(0, 1 << 20, {777}, any);
  EXPECT_LT(wide.size(), 100u);
  for (const std::int64_t value : {1, 2, 4096, 777, (1 << 20) - 1}) {
    EXPECT_NE(std::find(wide.begin(), wide.end(), value), wide.end()) << value;
  }
  EXPECT_EQ(rungs(1, 20), (std::vector<std::int64_t>{1, 2, 3, 4, 8, 16, 20}));
  EXPECT_EQ(single_steps(1, 20, any), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 18, 19}));
  EXPECT_EQ(single_steps(1, 3, any), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(larger_values(17, {9, 100, 300}, any), (std::vector<std::int64_t>{18, 32, 100}));
  EXPECT_EQ(larger_values(0, {}, any), (std::vector<std::int64_t>{1}));
  EXPECT_THROW(number_of("7x"), std::invalid_argument);
}

}  // namespace shrink_test

}  // namespace plumb::bisect
