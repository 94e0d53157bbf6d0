// SPDX-License-Identifier: Apache-2.0
//
// All kernels share one namespace. To the linker, two inline functions of one name and type are one
// function: which of the two bodies a kernel gets would depend on the compiler. So no two files of
// device/kernels may define the same one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace kernel_names_test {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "name(types)": parameters without their names, on one line.
std::string signature(const std::string& name, const std::string& parameters) {
  const std::string one_line = std::regex_replace(parameters, std::regex("\\s+"), " ");
  return name + "(" + std::regex_replace(one_line, std::regex(" ?\\w+(,|$)"), "$1") + ")";
}

TEST(KernelNames, NoInlineFunctionIsDefinedInTwoFiles) {
  const std::regex function("\\binline [\\w:<>*& ]*?[ *&](\\w+)\\(([^()]*)\\)");
  std::map<std::string, std::string> file_of;
  int functions = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PLUMB_KERNELS)) {
    const std::string text = text_of(entry.path()), file = entry.path().filename().string();
    for (std::sregex_iterator found(text.begin(), text.end(), function), end; found != end;
         ++found, ++functions) {
      const std::string defined = signature((*found)[1], (*found)[2]);
      const auto [place, first] = file_of.emplace(defined, file);
      EXPECT_TRUE(first || place->second == file)
          << defined << " is in " << place->second << " and in " << file;
    }
  }
  EXPECT_GT(functions, 40) << "the pattern finds no functions";
  EXPECT_TRUE(file_of.contains("sum_of_lanes(float)"));
}

}  // namespace kernel_names_test
