// SPDX-License-Identifier: Apache-2.0
//
// What the judge reports for wrong selections: which rows and places are wrong, and the pattern.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/ops/top_k/top_k.h"
#include "cases/tables/problem.h"
#include "reference/top_k/top_k_per_row.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {

OpDefinition define_top_k_per_row_prefill();
OpDefinition define_top_k_per_row_decode();

namespace top_k_verdict_test {

// Four live rows of two requests, and a dead row. K 16. Windows of 50 columns with distinct logits.
// Every window starts beyond column 50, so no global column number is a valid local one.
class TopKVerdict : public ::testing::Test {
 protected:
  TopKVerdict()
      : op(define_top_k_per_row_prefill()),
        problem(op.make_problem(
            row_of(op, {{"k", 16}, {"rows", 5}, {"requests", 2}, {"length", 50}, {"lead", 60}}),
            {})),
        tensors(problem->make_tensors()) {
    problem->fill(step, tensors);
    select(50);
  }

  // Writes the right answer for windows of another length. Row 4 is dead.
  void select(std::int64_t length) {
    const HostTensor& logits = tensors.at("logits");
    for (std::int64_t r = 0; r < 5; ++r) {
      const std::int32_t start = tensors.at("row_starts").data<std::int32_t>()[r];
      const std::int64_t own = r < 4 ? length : 0;
      reference::select_top_k({logits.row<float>(r) + start, 1, own}, 16, places(r));
    }
  }

  std::int32_t* places(std::int64_t row) { return tensors.at("indices").row<std::int32_t>(row); }
  std::int32_t start(std::int64_t row) {
    return tensors.at("row_starts").data<std::int32_t>()[row];
  }
  TensorReport judge() const { return problem->judge(step, tensors, {}, {}).at(0); }

  OpDefinition op;
  std::unique_ptr<Problem> problem;
  TensorSet tensors;
  Step step{5, 4, Fill::exact, DeadRows::zero};
};

TEST_F(TopKVerdict, PassesTheReferenceInAnyOrder) {
  EXPECT_TRUE(judge().passed());
  EXPECT_EQ(judge().rows_compared, 5);
  EXPECT_GT(judge().observability, 0.9);
  std::reverse(places(1), places(1) + 16);
  EXPECT_TRUE(judge().passed());
}

TEST_F(TopKVerdict, NamesGlobalColumns) {
  for (const std::int64_t r : {2, 3}) {
    for (int i = 0; i < 16; ++i) places(r)[i] += start(r);
  }
  const TensorReport report = judge();
  EXPECT_EQ(report.wrong_rows, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(report.wrong_elements, 32);
  EXPECT_NE(report.pattern.find("too large by row_starts[row]"), std::string::npos);
}

TEST_F(TopKVerdict, NamesALengthThatIsOffByOne) {
  // All windows end one column early. The logit that is lost is the largest.
  for (std::int64_t r = 0; r < 4; ++r) {
    tensors.at("logits").row<float>(r)[start(r) + 49] = 1e6f;
  }
  select(49);
  const TensorReport report = judge();
  EXPECT_EQ(report.wrong_rows.size(), 4u);
  EXPECT_NE(report.pattern.find("one column shorter"), std::string::npos);
}

TEST_F(TopKVerdict, NamesWhatWrongPlacesHaveInCommon) {
  const auto pattern_with = [this](std::int64_t row, int place, std::int32_t value) {
    const std::int32_t kept = std::exchange(places(row)[place], value);
    const TensorReport report = judge();
    places(row)[place] = kept;
    EXPECT_EQ(report.wrong_rows, (std::vector<std::int64_t>{row}));
    EXPECT_EQ(report.wrong_elements, 1);
    EXPECT_EQ(report.worst->coordinates, fmt::format("[{}, {}]", row, place));
    return report.pattern;
  };
  EXPECT_EQ(pattern_with(4, 3, 0), "0 instead of -1 behind the last valid index");
  EXPECT_EQ(pattern_with(4, 3, 7), "indices behind the first min(length, k) places");
  EXPECT_EQ(pattern_with(1, 3, -1), "-1 inside the valid prefix: winners were dropped");
  EXPECT_EQ(pattern_with(1, 3, places(1)[2]), "winners emitted twice crowd out others");
  EXPECT_EQ(pattern_with(1, 3, 0x7b7b7b7b),
            "no wrong place was written (each still holds plumb's poison)");
}

TEST_F(TopKVerdict, NamesTheFirstColumns) {
  for (int i = 0; i < 16; ++i) places(0)[i] = i;
  EXPECT_EQ(judge().pattern, "the first k columns instead of the k largest");
}

// One wrong index that happens to equal its place in the row.
TEST_F(TopKVerdict, ALoserAtItsOwnPlaceIsNotTheFirstColumns) {
  std::int32_t loser = 0;
  const std::set<std::int32_t> winners(places(0), places(0) + 16);
  while (winners.contains(loser)) ++loser;
  ASSERT_LT(loser, 16);
  places(0)[loser] = loser;
  const TensorReport report = judge();
  EXPECT_EQ(report.wrong_elements, 1);
  EXPECT_EQ(report.pattern, "");
}

TEST_F(TopKVerdict, SaysWhichWinnerIsMissing) {
  // Exact logits are all distinct, so the smallest one is never among the winners.
  std::int32_t loser = 0;
  const float* window = tensors.at("logits").row<float>(0) + start(0);
  for (std::int32_t i = 1; i < 50; ++i) loser = window[i] < window[loser] ? i : loser;
  const std::int32_t winner = std::exchange(places(0)[5], loser);
  const TensorReport report = judge();
  EXPECT_EQ(report.wrong_elements, 1);
  EXPECT_EQ(report.worst->expected, winner);
  EXPECT_EQ(report.worst->got, loser);
  EXPECT_NE(report.failures.at(0).find("a larger logit was left out"), std::string::npos);
}

Row trivial_row(const OpDefinition& op, const Integers& integers, const std::string& trivial) {
  Row row = row_of(op, integers);
  row.trivial = trivial;
  return row;
}

TEST(TopKCases, ARowWithoutSelectionHasToSaySo) {
  const OpDefinition op = define_top_k_per_row_decode();
  const Integers identity = {{"k", 64}, {"length", 64}}, empty = {{"length", 0}};
  EXPECT_THROW(op.make_problem(row_of(op, identity), {}), BadRow);
  EXPECT_THROW(op.make_problem(trivial_row(op, identity, "zero"), {}), BadRow);
  EXPECT_THROW(op.make_problem(trivial_row(op, {}, "identity"), {}), BadRow);
  EXPECT_NO_THROW(op.make_problem(trivial_row(op, identity, "identity"), {}));
  EXPECT_NO_THROW(op.make_problem(trivial_row(op, empty, "zero"), {}));
}

}  // namespace top_k_verdict_test
}  // namespace plumb::cases
