// SPDX-License-Identifier: Apache-2.0
//
// The table of detectors in docs/decode_steps.md has one line for each detector, in the order of
// the enumeration.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "decode/checks/findings.h"

namespace plumb::cases {
namespace decode_detectors_test {

std::vector<std::string> names_in(const std::string& page) {
  std::vector<std::string> names;
  const std::regex line("\n\\| `([a-z]+)` \\| [^|]+ \\|");
  for (std::sregex_iterator found(page.begin(), page.end(), line), end; found != end; ++found) {
    names.push_back((*found)[1]);
  }
  return names;
}

TEST(Detectors, AreOnThePageInTheirOrder) {
  std::ifstream file(std::filesystem::path(PLUMB_SOURCE_DIR) / "docs/decode_steps.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = page.find("\n## Detectors\n");
  ASSERT_NE(begin, std::string::npos);
  std::vector<std::string> expected;
  for (int i = 0; i < kDetectors; ++i) {
    expected.emplace_back(name_of(static_cast<Detector>(i)));
  }
  EXPECT_EQ(names_in(page.substr(begin, page.find("\n## Tests\n") - begin)), expected);
}

TEST(Detectors, ThatThePageLacksAreSeen) {
  EXPECT_EQ(names_in("\n| `error` | a |\n| `cost` | b |\n"),
            (std::vector<std::string>{"error", "cost"}));
}

}  // namespace decode_detectors_test
}  // namespace plumb::cases
