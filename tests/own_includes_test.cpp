// SPDX-License-Identifier: Apache-2.0
//
// Sources include what they use, although precompiled headers would let them compile without. This
// test checks names of the standard library and of other libraries. Headers of plumb's own are
// checked by a build whose precompiled headers do not contain them (.ci/run, with the thread
// sanitizer).
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/source_tree.h"

namespace plumb::tests {
namespace own_includes_test {

namespace fs = std::filesystem;
using Names = std::set<std::string, std::less<>>;

// A precompiled header, the names it is needed for, and other headers that declare these names.
struct PrecompiledHeader {
  std::string name;
  Names used_for, stand_ins;
};

Names words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

const std::vector<PrecompiledHeader>& precompiled_headers() {
  static const std::vector<PrecompiledHeader> all = [] {
    const auto of_std = [](const std::string& names) {
      Names qualified;
      for (const std::string& name : words_of(names)) qualified.insert("std::" + name);
      return qualified;
    };
    return std::vector<PrecompiledHeader>{
        {"algorithm",
         of_std("sort stable_sort min max clamp find find_if any_of all_of none_of copy copy_if "
                "copy_n fill fill_n count count_if transform reverse rotate unique equal replace "
                "lower_bound upper_bound nth_element min_element max_element minmax_element "
                "is_sorted remove_if search mismatch binary_search iter_swap for_each generate "
                "includes set_difference"),
         {}},
        {"array", of_std("array"), {}},
        {"cmath",
         of_std("sqrt exp exp2 log log2 abs fabs floor ceil isnan isfinite isinf ldexp frexp round "
                "nearbyint pow hypot fma signbit nextafter erf cos sin trunc copysign scalbn "
                "ilogb lround llround rint"),
         {}},
        {"cstdint",
         of_std("int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t"),
         {"cinttypes", "random"}},
        {"functional", of_std("function less greater plus hash ref cref invoke"), {"map", "set"}},
        {"map", of_std("map multimap"), {}},
        {"memory",
         of_std("unique_ptr shared_ptr weak_ptr make_unique make_shared enable_shared_from_this"),
         {}},
        {"optional", of_std("optional nullopt"), {}},
        {"span", of_std("span"), {}},
        {"string",
         of_std("string to_string getline"),
         {"filesystem", "fstream", "iostream", "sstream", "stdexcept"}},
        {"string_view", of_std("string_view"), {"string", "filesystem", "fmt/format.h"}},
        {"utility",
         of_std("move forward pair swap exchange make_pair as_const index_sequence"),
         {"algorithm", "array", "functional", "map", "memory", "optional", "set", "span", "string",
          "thread", "tuple", "variant", "vector"}},
        {"vector", of_std("vector"), {}},
        {"chrono", of_std("chrono"), {}},
        {"filesystem", of_std("filesystem"), {}},
        {"fstream", of_std("ifstream ofstream fstream"), {}},
        {"thread", of_std("thread jthread this_thread"), {}},
        {"fmt/format.h", {"fmt::"}, {}},
        {"nlohmann/json.hpp", {"nlohmann::"}, {"nlohmann/json_fwd.hpp"}},
        {"concepts", of_std("same_as convertible_to integral floating_point"), {}},
        {"exception", of_std("exception_ptr current_exception rethrow_exception"), {}},
        {"limits", of_std("numeric_limits"), {"cmath", "random"}},
        {"source_location", of_std("source_location"), {}},
        {"tuple", of_std("tuple make_tuple tie"), {}},
        {"type_traits",
         of_std(
             "is_same_v conditional_t decay_t remove_cvref_t is_trivially_copyable_v enable_if_t "
             "invoke_result_t underlying_type_t is_enum_v"),
         {"concepts", "memory", "utility", "functional", "tuple", "algorithm", "variant",
          "optional", "vector", "map", "string"}},
        {"gtest/gtest.h",
         {"TEST", "TEST_F", "TEST_P", "EXPECT_EQ", "EXPECT_TRUE", "ASSERT_EQ"},
         {}},
    };
  }();
  return all;
}

bool in_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Contents of a source without comments and strings: its names ("std::max", "fmt::", "TEST") and
// the headers that it includes.
struct SourceText {
  Names names, system_headers;
  std::vector<std::string> own_headers;
};

void read_include(std::string_view line, SourceText& source) {
  const auto begin = line.find_first_of("<\"");
  const auto end = begin == line.npos ? begin : line.find_first_of(">\"", begin + 1);
  if (end == line.npos) return;
  const std::string name(line.substr(begin + 1, end - begin - 1));
  if (line[begin] == '<') source.system_headers.insert(name);
  if (line[begin] == '"') source.own_headers.push_back(name);
}

// Reads words, each with the namespace before it if it is a library's.
void read_names(std::string_view line, SourceText& source) {
  std::string before;
  for (std::size_t i = 0; i < line.size();) {
    if (line.substr(i).starts_with("//")) return;
    if (line[i] == '"') {
      for (++i; i < line.size() && line[i] != '"'; ++i) i += line[i] == '\\' ? 1 : 0;
      ++i;
    } else if (in_a_name(line[i])) {
      std::size_t end = i;
      while (end < line.size() && in_a_name(line[end])) ++end;
      const std::string word(line.substr(i, end - i));
      const bool qualifies = line.substr(end).starts_with("::");
      if (qualifies) source.names.insert(word + "::");
      source.names.insert(before + word);
      before = qualifies && word == "std" ? "std::" : "";
      i = end + (qualifies ? 2 : 0);
    } else {
      before.clear();
      ++i;
    }
  }
}

SourceText read_source(const fs::path& path) {
  SourceText source;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find_first_not_of(" \t");
    const bool directive = first != line.npos && line[first] == '#';
    if (directive && line.find("include") != line.npos) {
      read_include(line, source);
    } else {
      read_names(line, source);
    }
  }
  return source;
}

// Reads and caches sources.
class Sources {
 public:
  explicit Sources(fs::path root) : root_(std::move(root)) {}

  const SourceText& text(const fs::path& path) {
    const auto [place, is_new] = texts_.try_emplace(path.string());
    if (is_new) place->second = read_source(root_ / path);
    return place->second;
  }

  // Headers that the file includes, directly or through plumb's own headers.
  Names system_headers(const fs::path& path) {
    Names found;
    std::vector<fs::path> waiting{path};
    std::set<fs::path> seen{path};
    while (!waiting.empty()) {
      const fs::path file = waiting.back();
      waiting.pop_back();
      const SourceText& source = text(file);
      found.insert(source.system_headers.begin(), source.system_headers.end());
      for (const std::string& name : source.own_headers) {
        const fs::path beside = (file.parent_path() / name).lexically_normal();
        const fs::path included = fs::exists(root_ / name) ? fs::path(name) : beside;
        if (seen.insert(included).second) waiting.push_back(included);
      }
    }
    return found;
  }

 private:
  fs::path root_;
  std::map<std::string, SourceText> texts_;
};

// Lines such as "cases/a.cpp: std::max without <algorithm>", one per missing header.
std::vector<std::string> missing_includes(const fs::path& root) {
  const std::vector<std::string> folders{"reference", "device", "cases",     "decode",
                                         "faults",    "golden", "diagnosis", "bisect",
                                         "tools",     "tests",  "process",   "python"};
  Sources sources(root);
  std::vector<std::string> found;
  for (const fs::path& path : files_below(root, folders, {".h", ".cpp", ".cu"})) {
    const Names included = sources.system_headers(path);
    for (const PrecompiledHeader& header : precompiled_headers()) {
      const auto has = [&](const std::string& name) { return included.contains(name); };
      if (has(header.name) || std::any_of(header.stand_ins.begin(), header.stand_ins.end(), has))
        continue;
      for (const std::string& name : sources.text(path).names) {
        if (!header.used_for.contains(name)) continue;
        found.push_back(path.string() + ": " + name + " without <" + header.name + ">");
        break;
      }
    }
  }
  return found;
}

TEST(OwnIncludes, AreThereForWhatASourceUses) {
  for (const std::string& line : missing_includes(PLUMB_SOURCE_DIR)) ADD_FAILURE() << line;
}

TEST(OwnIncludes, AMissingOneIsFound) {
  const PlantedTree tree;
  tree.write("cases/a.h", "#include <vector>\n#include \"cases/deep/b.h\"\nstd::vector<int> a;\n");
  tree.write("cases/deep/b.h", "#include <string>\n#include \"c.h\"\n");
  tree.write("cases/deep/c.h", "#  include <algorithm>\n");
  tree.write("cases/right.cpp",
             "#include \"cases/a.h\"\n// std::optional\nint x = std::max(1, 2);\n"
             "const char* text = \"\\\"std::span\"; void own::max(); std::string s; fmtx::y z;\n");
  tree.write(
      "cases/wrong.cpp",
      "#include \"cases/deep/c.h\"\nstd::string s = fmt::format(\"\");\nstd::optional<int> o;\n");
  tree.write("tests/t.cpp", "TEST(A, B) { std::move(x); }\n");
  EXPECT_EQ(missing_includes(tree.root()),
            (std::vector<std::string>{"cases/wrong.cpp: std::optional without <optional>",
                                      "cases/wrong.cpp: std::string without <string>",
                                      "cases/wrong.cpp: fmt:: without <fmt/format.h>",
                                      "tests/t.cpp: std::move without <utility>",
                                      "tests/t.cpp: TEST without <gtest/gtest.h>"}));
}

// A precompiled header without a row above could hide missing includes.
TEST(OwnIncludes, HaveARowForEachPrecompiledHeader) {
  std::ifstream file(fs::path(PLUMB_SOURCE_DIR) / "cmake/precompiled_headers.cmake");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  Names rows;
  for (const PrecompiledHeader& header : precompiled_headers()) rows.insert(header.name);
  int headers = 0;
  for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    const std::string name = text.substr(at + 1, text.find('>', at) - at - 1);
    ++headers;
    if (name == "Eigen/Core") continue;  // too many names to list
    // plumb's own headers are not precompiled in the thread sanitizer's build, which checks them.
    if (fs::exists(fs::path(PLUMB_SOURCE_DIR) / name)) continue;
    EXPECT_TRUE(rows.contains(name)) << name;
  }
  EXPECT_GT(headers, 15);
}

}  // namespace own_includes_test
}  // namespace plumb::tests
