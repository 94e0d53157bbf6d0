// SPDX-License-Identifier: Apache-2.0
#include "device/plugin/told_text.h"

#include <gtest/gtest.h>

#include <string>

namespace plumb::device {
namespace told_text_test {

TEST(ToldText, IsOneLineWithoutControlCharacters) {
  EXPECT_EQ(told("a\nb\t\x1b[2J\x7f"), "a b  [2J ");
  EXPECT_EQ(told("\302\2332J \303\251"), " 2J \303\251");  // a C1 control character, and a letter
  EXPECT_EQ(told(nullptr), "");
}

TEST(ToldText, WithoutAnEndIsCut) {
  const std::string text(kMostToldBytes + 1, 'x');
  EXPECT_EQ(told(text.c_str()).size(), kMostToldBytes);
}

}  // namespace told_text_test
}  // namespace plumb::device
