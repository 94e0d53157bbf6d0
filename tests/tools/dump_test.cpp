// SPDX-License-Identifier: Apache-2.0
//
// plumb run --dump: writes the tensors of a failed case in numpy's format.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"

namespace plumb {
namespace dump_test {

// Checks the header of an array for this type and shape, and returns its elements.
template <class T>
std::vector<T> elements(const std::string& bytes, const std::string& type,
                        const std::string& shape) {
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\1\0", 8));
  if (bytes.size() < 10) return {};
  const std::size_t start = 10 + static_cast<unsigned char>(bytes[8]) +
                            std::size_t{256} * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ(start % 64, 0u);
  const std::string header = bytes.substr(10, start - 10);
  EXPECT_NE(header.find("'descr': '" + type + "'"), std::string::npos) << header;
  EXPECT_NE(header.find("'shape': (" + shape), std::string::npos) << header;
  std::vector<T> values((bytes.size() - start) / sizeof(T));
  std::memcpy(values.data(), bytes.data() + start, values.size() * sizeof(T));
  return values;
}

class Dump : public CommandLine {
 protected:
  Finished run_plugin(const std::string& name, const std::string& which, Words more = {}) const {
    Words words{"run",
                "--plugin",
                std::string(PLUMB_TEST_PLUGINS) + "/" + name + ".so",
                "--platform",
                "sim-sm90",
                "--no-diagnosis",
                "--case",
                which,
                "--json",
                path("report.json"),
                "--dump",
                path("dump")};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  std::string dumped(const std::string& file) const {
    return contents(path("dump/rms_norm.hidden_257.eager.sim-sm90/" + file));
  }
};

TEST_F(Dump, HasWhatWasReadWrittenAndExpected) {
  const Finished finished = run_plugin("launches_ignores_weight", "rms_norm/hidden_257/eager");
  EXPECT_EQ(finished.code, 1);
  const std::string folder = path("dump/rms_norm.hidden_257.eager.sim-sm90");
  EXPECT_NE(finished.out.find("      tensors: " + folder + "\n"), std::string::npos)
      << finished.out;
  const auto report = nlohmann::json::parse(contents(path("report.json")));
  EXPECT_EQ(report["cases"][0]["dump"], folder);
  const auto json = nlohmann::json::parse(dumped("case.json"));
  EXPECT_EQ(json["case"], "rms_norm/hidden_257/eager");
  EXPECT_EQ(json["tensors"]["x"]["role"], "input");
  EXPECT_EQ(json["tensors"]["out"]["dtype"], "bf16");
  const auto rows = json["tensors"]["out"]["shape"][0].get<std::int64_t>();
  const std::string shape = std::to_string(rows) + ", 257";
  const auto got = elements<float>(dumped("out.npy"), "<f4", shape);
  const auto expected = elements<double>(dumped("out.expected.npy"), "<f8", shape);
  const auto bound = elements<double>(dumped("out.bound.npy"), "<f8", shape);
  const auto error = elements<double>(dumped("out.error.npy"), "<f8", shape);
  const auto weight = elements<float>(dumped("weight.npy"), "<f4", "257");
  ASSERT_EQ(got.size(), static_cast<std::size_t>(rows * 257));
  ASSERT_EQ(error.size(), got.size());
  int wrong = 0, promised = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(error[i])) continue;
    ++promised;
    EXPECT_DOUBLE_EQ(error[i], std::abs(static_cast<double>(got[i]) - expected[i]) / bound[i]);
    EXPECT_NEAR(got[i] * weight[i % 257], expected[i], 0.02 * std::abs(expected[i]) + 1e-9);
    wrong += error[i] > 1;
  }
  EXPECT_GT(wrong, 0);
  EXPECT_GT(promised, wrong);
}

TEST_F(Dump, TakesThePlaceOfAnEarlierOne) {
  run_plugin("launches_ignores_weight", "rms_norm/hidden_257/eager");
  const std::string stale = write("dump/rms_norm.hidden_257.eager.sim-sm90/stale.npy", "");
  run_plugin("launches_ignores_weight", "rms_norm/hidden_257/eager");
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_NE(dumped("out.npy"), "");
  std::size_t folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("dump"))) {
    folders += entry.exists();
  }
  EXPECT_EQ(folders, 1u);
}

TEST_F(Dump, RightKernelsHaveNone) {
  EXPECT_EQ(
      run({"run", "--case", "rms_norm/hidden_257/eager", "--json", "", "--dump", path("dump")})
          .code,
      0);
  EXPECT_TRUE(std::filesystem::is_empty(path("dump")));
}

TEST_F(Dump, AFolderThatCannotBeMadeIsOneLine) {
  const std::string file = write("file", "");
  expect_refused(
      {"run", "--case", "rms_norm/hidden_257/eager", "--json", "", "--dump", file + "/dump"},
      "--dump: cannot write");
}

}  // namespace dump_test
}  // namespace plumb
