// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/line_kind.h"

#include <gtest/gtest.h>

namespace plumb::cases {
namespace line_kind_test {

TEST(LineKind, HoldsNoNumbersAndNoPlaces) {
  EXPECT_EQ(without_numbers("out: 5 of 9 rows (rows 0-3, 7) wrong; worst [1, 2]: expected 3"),
            "out: # of # row wrong");
  EXPECT_EQ(without_numbers("indices: 1 of 6 rows (row 5) wrong; row 5 differs"),
            "indices: # of # row wrong");
  EXPECT_EQ(without_numbers("k1_cache: 3 elements (first [0, 1]) at -1.5e-07"),
            "k1_cache: # element at #");
  EXPECT_EQ(without_numbers("out: 1 element beyond its bound in 1 of 2 rows (row 1)"),
            without_numbers("out: 7 elements beyond their bound in 2 of 2 rows (rows 0-1)"));
}

TEST(LineKind, IsTheSameForListsOfAnyLength) {
  EXPECT_EQ(without_numbers("state: differs in 3 of 9 rows (rows 1, 4, 7)"),
            without_numbers("state: differs in 1 of 4 rows (row 2)"));
  EXPECT_NE(without_numbers("state: differs in 3 of 9 rows"),
            without_numbers("state: gap written in 3 of 9 rows"));
}

}  // namespace line_kind_test
}  // namespace plumb::cases
