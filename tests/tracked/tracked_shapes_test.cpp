// SPDX-License-Identifier: Apache-2.0
//
// Tests that moved, picked or repeated elements of tracked arrays keep their errors: errors of the
// same element in two arrays add up or cancel, and errors of different elements do not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "reference/tracked/tracked.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {
namespace tracked_shapes_test {

// Functions with errors so large that the roundings of sums and products are negligible.
const Numerics kCoarse{.function_ulp = 1000};

Tracked numbers(const TrackedSizes& sizes) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements_of(sizes); ++i) {
    values.push_back(0.01 * static_cast<double>(i + 1));
  }
  return {values, sizes, kCoarse};
}
// Elements with independent errors, each with a sigma of about kSigma.
Tracked own_errors(const TrackedSizes& sizes) { return exp(numbers(sizes)); }
const double kSigma = own_errors({1}).sigma(0);

// Sigma of the sum of all elements, in units of kSigma.
double sigma_of_all(const Tracked& a) {
  Tracked total = a;
  for (std::size_t d = 0; d < a.sizes().size(); ++d) total = sum(total, d);
  return total.sigma(0) / kSigma;
}
void expect_nothing(const Tracked& a, const Tracked& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  for (std::int64_t i = 0; i < elements_of(a.sizes()); ++i) {
    EXPECT_EQ(a.values()[static_cast<std::size_t>(i)], b.values()[static_cast<std::size_t>(i)]);
    EXPECT_LT((a - b).sigma(i), 0.01 * kSigma) << i;
    EXPECT_GT((a + b).sigma(i), 1.9 * kSigma) << i;
  }
}
void expect_independent(const Tracked& a, const Tracked& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  for (std::int64_t i = 0; i < elements_of(a.sizes()); ++i) {
    EXPECT_GT((a - b).sigma(i), 1.3 * kSigma) << i;
  }
}

TEST(TrackedShapes, SlicesOfSlicesMeet) {
  const Tracked e = own_errors({6});
  expect_nothing(sliced(e, 0, 2, 2), sliced(sliced(e, 0, 1, 4), 0, 1, 2));
  expect_nothing(sliced(sliced(e, 0, 0, 3), 0, 2, 1), sliced(sliced(e, 0, 2, 4), 0, 0, 1));
  expect_independent(sliced(e, 0, 0, 3), sliced(e, 0, 1, 3));
}

TEST(TrackedShapes, JoinsOfAllPartsAreTheWhole) {
  const Tracked e = own_errors({4, 3});
  expect_nothing(e, joined({sliced(e, 0, 0, 1), sliced(e, 0, 1, 2), sliced(e, 0, 3, 1)}, 0));
  expect_nothing(e, joined({sliced(e, 1, 0, 2), sliced(e, 1, 2, 1)}, 1));
  expect_independent(
      e,
      joined({sliced(e, 0, 1, 1), sliced(e, 0, 0, 1), sliced(e, 0, 3, 1), sliced(e, 0, 2, 1)}, 0));
}

// The sum of both slices is e0 + 2 e1 + e2, with variance 6.
TEST(TrackedShapes, SumsAddUpWhatOverlaps) {
  const Tracked e = own_errors({3});
  const Tracked twice = joined({sliced(e, 0, 0, 2), sliced(e, 0, 1, 2)}, 0);
  EXPECT_NEAR(sigma_of_all(twice), std::sqrt(6.0), 0.1);
  EXPECT_NEAR(sigma_of_all(joined({e, -e}, 0)), 0, 0.01);
  EXPECT_NEAR(sigma_of_all(joined({e, own_errors({3})}, 0)), std::sqrt(6.0), 0.1);
}

TEST(TrackedShapes, ReshapesOfSharedErrorsKeepThem) {
  const Tracked shared = numbers({3, 4}) * 0.0 + own_errors({4});  // one error per column
  const Tracked flat = reshaped(shared, {12});
  EXPECT_NEAR(flat.sigma(5), shared.sigma(5), 1e-3 * kSigma);
  EXPECT_NEAR(sigma_of_all(flat), 6, 0.2);
  // Shapes that keep columns together keep the sources exactly.
  expect_nothing(reshaped(reshaped(shared, {3, 2, 2}), {3, 4}), shared);
  EXPECT_NEAR(sigma_of_all(reshaped(shared, {3, 2, 2})), 6, 0.2);
  // More than 16 sources become random mixes, so sigmas are only approximately right.
  const Tracked many = reshaped(numbers({3, 40}) * 0.0 + own_errors({40}), {120});
  EXPECT_NEAR(many.sigma(7), 1.25 * own_errors({40}).sigma(7), 0.1 * kSigma);
  EXPECT_GT(sigma_of_all(many), 0.6 * 3 * std::sqrt(40.0));
  EXPECT_LT(sigma_of_all(many), 2 * 3 * std::sqrt(40.0));
}

// Elements 4..11 and 2..9 of one array: no element has the same position in both.
TEST(TrackedShapes, DoNotTakeOtherElementsForTheSame) {
  const Tracked e = own_errors({4, 4});
  const Tracked rows = sliced(e, 0, 1, 2);
  const Tracked others = reshaped(sliced(reshaped(e, {8, 2}), 0, 1, 4), {2, 4});
  expect_independent(rows, others);
  const Tracked square = own_errors({3, 3});
  const Tracked mirrored = square - transposed(square);
  EXPECT_GT(mirrored.sigma(1), 1.3 * kSigma);
}

TEST(TrackedShapes, Transposes) {
  const Tracked e = own_errors({2, 3, 4});
  EXPECT_EQ(transposed(e).sizes(), (TrackedSizes{2, 4, 3}));
  EXPECT_EQ(transposed(e).values()[1], e.values()[4]);
  EXPECT_EQ(transposed(e).sigma(12), e.sigma(12));
  expect_nothing(transposed(transposed(e)), e);
  expect_nothing(reshaped(sliced(transposed(e), 2, 1, 1), {2, 4}),
                 reshaped(sliced(e, 1, 1, 1), {2, 4}));
  EXPECT_THROW(transposed(numbers({3})), std::invalid_argument);
}

TEST(TrackedShapes, GatherKeepsTheErrorsOfRows) {
  const Tracked e = own_errors({5, 3});
  const Tracked picks = gather(e, 0, {4, 1, 1, 0});
  EXPECT_EQ(picks.sizes(), (TrackedSizes{4, 3}));
  EXPECT_EQ(picks.values()[0], e.values()[12]);
  EXPECT_EQ(picks.sigma(0), e.sigma(12));
  EXPECT_EQ(picks.worst(4), e.worst(4));
  expect_nothing(picks, gather(e, 0, {4, 1, 1, 0}));
  expect_nothing(sliced(picks, 0, 1, 1), sliced(picks, 0, 2, 1));
  expect_nothing(sliced(picks, 0, 1, 1), sliced(e, 0, 1, 1));
  expect_independent(sliced(picks, 0, 0, 2), sliced(picks, 0, 2, 2));
  expect_nothing(gather(e, 0, {1, 2, 3}), sliced(e, 0, 1, 3));
  expect_nothing(gather(gather(e, 0, {4, 3, 2, 1, 0}), 0, {4, 3, 2, 1, 0}), e);
  EXPECT_NEAR(sigma_of_all(gather(e, 0, {2, 2, 2, 2})), 4 * std::sqrt(3.0), 0.6);
  EXPECT_NEAR(sigma_of_all(picks), std::sqrt(3 * (1 + 4 + 1.0)), 0.4);
  EXPECT_THROW(gather(e, 0, {5}), std::invalid_argument);
  EXPECT_THROW(gather(e, 2, {0}), std::invalid_argument);
  // More than 16 repeated rows, whose sources become random mixes.
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < 80; ++i) indices.push_back(i * 7 % 40);
  const Tracked many = gather(own_errors({40, 2}), 0, indices);
  EXPECT_GT(many.sigma(9), kSigma);
  expect_nothing(sliced(many, 0, 3, 1), sliced(many, 0, 43, 1));
  EXPECT_GT(sigma_of_all(many), 0.6 * 2 * std::sqrt(80.0));
}

TEST(TrackedShapes, ScatterLeavesOthersAtZero) {
  const Tracked e = own_errors({2, 3});
  const Tracked there = scatter(e, 0, {3, 1}, 5);
  EXPECT_EQ(there.sizes(), (TrackedSizes{5, 3}));
  for (const std::int64_t i : {0, 7, 13}) {
    EXPECT_EQ(there.values()[static_cast<std::size_t>(i)], 0);
    EXPECT_EQ(there.worst(i), 0);
  }
  EXPECT_EQ(there.values()[4], e.values()[4]);
  EXPECT_EQ(there.sigma(9), e.sigma(0));
  EXPECT_NEAR(sigma_of_all(there), std::sqrt(6.0), 0.2);
  expect_nothing(gather(there, 0, {3}), sliced(e, 0, 0, 1));
  EXPECT_THROW(scatter(e, 0, {3, 3}, 5), std::invalid_argument);
  EXPECT_THROW(scatter(e, 0, {3, 5}, 5), std::invalid_argument);
  EXPECT_THROW(scatter(e, 0, {3}, 5), std::invalid_argument);
}

TEST(TrackedShapes, ExactPartsOfAJoinStayExact) {
  const Tracked exact({3, 5}, {2}, kCoarse);
  EXPECT_TRUE(joined({exact, exact}, 0).node()->worst.empty());
  EXPECT_TRUE(joined({exact, exact}, 0).node()->centres.empty());
  const Tracked whole = joined({exact, own_errors({2})}, 0);
  EXPECT_EQ((whole * whole).worst(1), 0);
  EXPECT_EQ((whole + whole).worst(0), 0);
  EXPECT_EQ((whole / 4.0).worst(1), 0);
  EXPECT_GT((whole * whole).worst(2), 0);
}

TEST(TrackedShapes, BroadcastTo) {
  const Tracked e = own_errors({3, 1});
  const Tracked wide = broadcast_to(e, {2, 3, 4});
  EXPECT_EQ(wide.values()[4], e.values()[1]);
  expect_nothing(wide, broadcast_to(broadcast_to(e, {3, 4}), {2, 3, 4}));
  EXPECT_NEAR(sigma_of_all(wide), 8 * std::sqrt(3.0), 0.3);
  EXPECT_THROW(broadcast_to(wide, {3, 4}), std::invalid_argument);
}

}  // namespace tracked_shapes_test
}  // namespace plumb::reference
