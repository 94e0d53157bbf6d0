// SPDX-License-Identifier: Apache-2.0
//
// The size of a move: shares of a bound, rows and elements that moved, sketches.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "faults/faults.h"
#include "golden/compare.h"
#include "golden/dependence.h"
#include "golden/hdf5_file.h"
#include "golden/regenerate.h"
#include "reference/formats/bfloat16.h"
#include "tests/golden/golden_cases.h"
#include "tests/support/rows_and_cases.h"
#include "tools/golden/golden_check.h"
#include "tools/report.h"
#include "tools/result_codec.h"

namespace plumb::golden {
namespace drift_test {

TEST(GoldenDriftTest, WhatTheReferenceRejectsIsMarked) {
  const std::vector<cases::Case> wanted{cases::find_case("rms_norm/v4_flash_hidden/eager")};
  const GoldenChanges difference = difference_of(empty_file("rms_norm"), wanted, ids_of(wanted),
                                                 truncating("sim-sm90"), kAuthor);
  ASSERT_EQ(difference.changes.size(), 1u);
  EXPECT_FALSE(difference.changes[0].rejected.empty());
}

// A truncating kernel keeps each element within its last rounding and biases the tensor.
TEST(GoldenDriftTest, WhatTheReferenceRejectsHasNoShareOfABound) {
  const std::vector<cases::Case> wanted{cases::find_case("rms_norm/v4_flash_hidden/eager")};
  const GoldenFile stored = goldens_of("rms_norm");
  const GoldenChanges difference =
      difference_of(stored, wanted, ids_of(wanted), truncating("sim-sm90"), kAuthor);
  const Change& change = difference.changes.at(0);
  const TensorDrift& drift = change.drifts.at(0);
  EXPECT_GT(drift.elements_moved, 0);
  EXPECT_LE(drift.ulp, 1);
  EXPECT_EQ(drift.of_bound, 0) << "the element's own share, which is not shown";
  const std::string text = text_of(drift);
  EXPECT_NE(text.find(" ulp, rejected by the reference; row "), std::string::npos) << text;
  EXPECT_NE(text_of(change).find("      rejected: out: "), std::string::npos) << text_of(change);
  EXPECT_EQ(text.find("bound"), std::string::npos) << text;
  EXPECT_EQ(text.find("within"), std::string::npos) << text;

  CaseGolden golden = *stored.find(wanted[0].id());
  golden.provenance["compiler"] = "another one";
  const GoldenComparison comparison =
      compare(golden, GoldenCapture(wanted[0], truncating("sim-sm90")), false);
  EXPECT_EQ(comparison.agreement, Agreement::failed) << "no drift, on any toolchain";
  EXPECT_EQ(comparison.lines.back(), "golden: the reference rejects what is computed now");

  tools::Finished finished;
  finished.golden = comparison;
  const std::string json = tools::to_json_line(finished);
  EXPECT_NE(json.find("\"rejected\":true"), std::string::npos) << json;
  EXPECT_EQ(json.find("of_bound"), std::string::npos) << json;
}

// Elements without stored values have no share of a bound. A share of 0 would be wrong.
TEST(GoldenDriftTest, AMoveThatIsNotStoredHasNoShareOfABound) {
  const cases::Case which = cases::find_case("rms_norm/v4_flash_hidden/eager");
  const GoldenCapture capture(which, options_on("sim-sm90"));
  CaseGolden golden = capture.golden();
  TensorGolden& out = golden.outputs.at(0);
  ASSERT_TRUE(out.is_sampled());
  ASSERT_LT(out.sampled_rows.size(), out.row_checksums.size());
  std::size_t row = 0;
  while (std::find(out.sampled_rows.begin(), out.sampled_rows.end(),
                   static_cast<std::int64_t>(row)) != out.sampled_rows.end()) {
    ++row;
  }
  out.row_checksums[row] ^= 1;
  out.digest = std::string(32, '0');
  const TensorDrift drift = drift_between(golden, capture.golden(), &capture).at(0);
  EXPECT_EQ(drift.rows_moved, 1);
  EXPECT_EQ(drift.of_bound, -1);
  EXPECT_FALSE(drift.rejected);
  EXPECT_EQ(text_of(drift).find("bound"), std::string::npos) << text_of(drift);
}

double norm_between(const TensorGolden& a, const TensorGolden& b) {
  double squares = 0;
  for (std::size_t at = 0; at < a.values.size(); at += 2) {
    std::uint16_t x = 0, y = 0;
    std::memcpy(&x, a.values.data() + at, 2);
    std::memcpy(&y, b.values.data() + at, 2);
    const double apart = reference::decode_bf16(x) - reference::decode_bf16(y);
    squares += apart * apart;
  }
  return std::sqrt(squares);
}

// The golden of this case stores the first of five rows.
const char* const kSampledCase = "rms_norm/v4_flash_hidden/eager";

// The stored rows are equal, so only the sketch shows the size of the move.
TEST(GoldenDriftTest, RowsThatAreNotStoredHaveTheSizeOfTheirMove) {
  const cases::Case which = cases::find_case(kSampledCase);
  const GoldenCapture before(which, options_on("sim-sm90")), after(which, rounded_up("sim-sm90"));
  CaseGolden had = before.golden();
  TensorGolden& out = had.outputs.at(0);
  ASSERT_EQ(out.sampled_rows, std::vector<std::int64_t>{0});
  const TensorDrift drift = drift_between(had, after.golden(), &after).at(0);
  const double norm = norm_between(before.outputs()[0], after.outputs()[0]);
  ASSERT_GT(norm, 0);
  EXPECT_TRUE(drift.estimated);
  EXPECT_GT(drift.difference, norm / 2);
  EXPECT_LT(drift.difference, norm * 2);
  EXPECT_NEAR(drift.was.value().norm, drift.is.value().norm, 2 * norm);
  EXPECT_NE(text_of(drift).find("; in L2 norm about "), std::string::npos) << text_of(drift);

  TensorGolden stored = after.golden().outputs[0];
  out.values = stored.values;
  out.row_checksums[0] = stored.row_checksums[0];
  const TensorDrift unstored = drift_between(had, after.golden()).at(0);
  EXPECT_EQ(unstored.elements_moved, 0);
  EXPECT_EQ(unstored.difference, drift.difference);
  EXPECT_EQ(text_of(unstored).find("stored"), std::string::npos) << text_of(unstored);
  out.sketch.reset();
  EXPECT_EQ(drift_between(had, after.golden()).at(0).difference, -1);
  EXPECT_NE(text_of(drift_between(had, after.golden()).at(0)).find("values not stored, checksums"),
            std::string::npos);
}

TEST(GoldenDriftTest, TheElementsThatMovedFarthestAreListed) {
  const cases::Case which = cases::find_case("sqrt_softplus_topk/one_token/eager");
  const GoldenCapture capture(which, options_on("sim-sm90"));
  CaseGolden golden = capture.golden();
  TensorGolden& weights = *std::find_if(golden.outputs.begin(), golden.outputs.end(),
                                        [](const auto& t) { return t.dtype == cases::Dtype::f32; });
  ASSERT_FALSE(weights.is_sampled());
  ASSERT_GT(weights.values.size(), 8u);
  // Flips the two lowest bits of the first weight and the lowest bit of the second.
  weights.values[0] ^= std::byte{3};
  weights.values[4] ^= std::byte{1};
  weights.digest = digest_of(weights.values);
  const TensorDrift drift = drift_between(golden, capture.golden(), &capture).at(0);
  ASSERT_EQ(drift.largest.size(), 2u);
  EXPECT_EQ(drift.largest[0].ulp, drift.ulp);
  EXPECT_GE(drift.largest[0].ulp, drift.largest[1].ulp);
  EXPECT_EQ(drift.largest[1].ulp, 1);
  EXPECT_EQ(drift.moved_rows, "0");
  double squares = 0;
  for (const MovedElement& one : drift.largest) {
    EXPECT_NE(one.was, one.is);
    squares += (one.was - one.is) * (one.was - one.is);
  }
  EXPECT_FALSE(drift.estimated) << "all values are here";
  EXPECT_DOUBLE_EQ(drift.difference, std::sqrt(squares));
}

// A checksum of such a row would take more space than the row.
TEST(GoldenDriftTest, ATensorOfShortRowsIsStoredInFull) {
  const char* const op = "build_ragged_indices_from_dense";
  const std::vector<cases::Case> wanted{
      cases::find_case(fmt::format("{}/pro_topk_1024_bounded/eager", op))};
  const auto regenerated = [&](const GoldenFile& from, bool all) {
    return difference_of(from, wanted, ids_of(wanted), options_on("sim-sm90"),
                         {"commit", "generator", "why", all});
  };
  GoldenFile stored = regenerated(empty_file(op), false).next;
  TensorGolden& flat = stored.cases.at(0).outputs.at(1);
  ASSERT_EQ(flat.row_bytes(), 4u);
  ASSERT_EQ(flat.values.size(), 3072 * 4u);
  const TensorGolden in_full = flat;
  // As older versions stored it: a checksum of each row, and the first row.
  for (std::size_t row = 0; row < 3072; ++row) {
    flat.row_checksums.push_back(XXH3_64bits(in_full.values.data() + 4 * row, 4));
  }
  flat.sampled_rows = {0};
  flat.values.resize(4);
  EXPECT_TRUE(regenerated(stored, false).empty());
  const GoldenChanges again = regenerated(stored, true);
  EXPECT_EQ(again.sketched, 1);
  EXPECT_TRUE(again.changes.empty());
  EXPECT_EQ(again.next.cases.at(0).outputs.at(1).values, in_full.values);
  EXPECT_LT(encode(again.next).size(), encode(stored).size());
  EXPECT_TRUE(regenerated(again.next, true).empty());
}

TEST(GoldenDriftTest, SketchesAreAddedToGoldensWhoseResultsStay) {
  const std::vector<cases::Case> wanted{cases::find_case(kSampledCase),
                                        cases::find_case("rms_norm/hidden_1/eager")};
  GoldenFile stored =
      difference_of(empty_file("rms_norm"), wanted, ids_of(wanted), options_on("sim-sm90"), kAuthor)
          .next;
  const GoldenFile whole = stored;
  for (CaseGolden& golden : stored.cases) golden.outputs.at(0).sketch.reset();
  ASSERT_EQ(schema_of(stored), 1);
  const auto regenerated = [&](const GoldenFile& from, const Author& author) {
    return difference_of(from, wanted, ids_of(wanted), options_on("sim-sm90"), author);
  };
  EXPECT_TRUE(regenerated(stored, kAuthor).empty()) << "left alone unless it is asked for";
  const Author author{"commit", "generator", "why", true};
  const GoldenChanges added = regenerated(stored, author);
  EXPECT_TRUE(added.changes.empty());
  EXPECT_EQ(added.sketched, 1) << "a tensor whose values are all stored needs none";
  EXPECT_EQ(results_digest(added.next), results_digest(stored));
  EXPECT_EQ(added.next.history.back(), "commit: generator: why (sketches or values of 1 case)");
  EXPECT_EQ(added.next.cases[1].provenance, stored.cases[1].provenance);
  for (std::size_t i = 0; i < whole.cases.size(); ++i) {
    const TensorGolden &a = added.next.cases[i].outputs[0], &b = whole.cases[i].outputs[0];
    ASSERT_EQ(a.sketch.has_value(), b.sketch.has_value());
    if (!a.sketch) continue;
    EXPECT_EQ(a.sketch->projections, b.sketch->projections);
  }
  EXPECT_TRUE(regenerated(added.next, author).empty());
}

}  // namespace drift_test
}  // namespace plumb::golden
