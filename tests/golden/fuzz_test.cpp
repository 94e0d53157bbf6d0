// SPDX-License-Identifier: Apache-2.0
//
// Runs the fuzzer's corpus, and as many mutated inputs as a test has time for.
#include "tests/golden/fuzz.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

namespace plumb::golden {
namespace fuzz_test {

TEST(GoldenFuzzTest, TheCorpusIsReadOrRefused) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLUMB_CORPUS)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    fuzz_golden(bytes);
    ++files;
  }
  EXPECT_GT(files, 20);
}

TEST(GoldenFuzzTest, RandomEditsAreReadOrRefused) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::uint8_t> edits(random() % 200);
    for (std::uint8_t& byte : edits) byte = static_cast<std::uint8_t>(random());
    fuzz_golden(edits);
  }
}

}  // namespace fuzz_test
}  // namespace plumb::golden
