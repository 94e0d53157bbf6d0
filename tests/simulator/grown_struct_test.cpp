// SPDX-License-Identifier: Apache-2.0
//
// Structures of the C interface from a caller that knows more members than this build, or fewer.
#include "device/plugin/grown_struct.h"

#include <gtest/gtest.h>

namespace plumb {
namespace grown_struct_test {

using device::read_struct;
using device::why_unreadable;

struct OfThisVersion {
  std::int64_t struct_size = 0, first = 0, second = 0;
};
struct OfALaterVersion {
  std::int64_t struct_size = 0, first = 0, second = 0, third = 0;
};

std::string why_unreadable_here(const void* from, std::int64_t bytes) {
  return why_unreadable(from, bytes, sizeof(OfThisVersion), offsetof(OfThisVersion, second));
}

TEST(GrownStruct, LacksWhatItsMakerDidNotKnow) {
  const OfThisVersion made{16, 7, 8};
  EXPECT_EQ(why_unreadable_here(&made, 16), "");
  const auto read = read_struct<OfThisVersion>(&made, 16);
  EXPECT_EQ(read.first, 7);
  EXPECT_EQ(read.second, 0);
}

TEST(GrownStruct, MayHaveMembersThatNobodyHereKnowsIfTheyAreZero) {
  OfALaterVersion made{sizeof made, 7, 8, 0};
  EXPECT_EQ(why_unreadable_here(&made, sizeof made), "");
  EXPECT_EQ(read_struct<OfThisVersion>(&made, sizeof made).second, 8);
  made.third = 1;
  EXPECT_EQ(why_unreadable_here(&made, sizeof made),
            "a member at byte 24 that this plumb does not know");
}

TEST(GrownStruct, HasASize) {
  const OfThisVersion made{};
  for (const std::int64_t bytes :
       {std::int64_t{-1}, std::int64_t{0}, std::int64_t{15}, std::int64_t{1} << 40}) {
    EXPECT_NE(why_unreadable_here(&made, bytes).find("instead of 24"), std::string::npos) << bytes;
  }
}

}  // namespace grown_struct_test
}  // namespace plumb
