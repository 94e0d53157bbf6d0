// SPDX-License-Identifier: Apache-2.0
//
// Type names are unique within plumb, so that a text search finds the right type. Nested types and
// types of a single file count too.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/source_tree.h"

namespace plumb::tests {
namespace type_names_test {

namespace fs = std::filesystem;
using Places = std::map<std::string, std::set<std::string>>;  // places ("a.h:12") by type name

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error(command);
  std::string text;
  std::array<char, 4096> piece;
  while (std::size_t bytes = std::fread(piece.data(), 1, piece.size(), pipe.get())) {
    text.append(piece.data(), bytes);
  }
  return text;
}

bool has_ctags() {
  return output_of("ctags --version 2>/dev/null").find("Universal Ctags") != std::string::npos;
}

// Classes, structs, unions and enums. Aliases are left out, because they define no type.
Places types_below(const fs::path& root) {
  const PlantedTree scratch;
  std::ostringstream list;
  for (const fs::path& path :
       files_below(root,
                   {"reference", "device", "cases", "decode", "faults", "diagnosis", "golden",
                    "bisect", "tools", "process", "python"},
                   {".h", ".cpp", ".cu"})) {
    list << path.string() << "\n";
  }
  scratch.write("files", list.str());
  const std::string tags = output_of("cd '" + root.string() +
                                     "' && ctags --options=NONE --language-force=C++ "
                                     "--kinds-C++=csgu --excmd=number -f - -L '" +
                                     (scratch.root() / "files").string() + "' 2>/dev/null");
  Places places;
  std::istringstream lines(tags);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name, file, number;
    std::getline(fields, name, '\t');
    std::getline(fields, file, '\t');
    std::getline(fields, number, ';');
    if (!name.starts_with("!_") && !name.starts_with("__anon")) {
      places[name].insert(file + ":" + number);
    }
  }
  return places;
}

// Lines such as "Thing: a.h:1 b.cpp:5".
std::vector<std::string> duplicates(const Places& types) {
  std::vector<std::string> found;
  for (const auto& [name, places] : types) {
    if (places.size() < 2) continue;
    std::string line = name + ":";
    for (const std::string& place : places) line += " " + place;
    found.push_back(line);
  }
  return found;
}

TEST(SourceTreeTypes, HaveUniqueNames) {
  if (!has_ctags()) GTEST_SKIP() << "no universal-ctags on this machine";
  const Places types = types_below(PLUMB_SOURCE_DIR);
  EXPECT_GT(types.size(), 500u);
  for (const std::string& line : duplicates(types)) ADD_FAILURE() << line;
}

TEST(SourceTreeTypes, ASecondOneOfANameIsFound) {
  if (!has_ctags()) GTEST_SKIP() << "no universal-ctags on this machine";
  const PlantedTree tree;
  tree.write("cases/one.h",
             "namespace a { struct Thing { int x; }; class Alone {}; struct Fwd; }\n"
             "using Other = a::Thing;\n");
  tree.write("bisect/other.h", "namespace b { class Other {}; struct Fwd; }\n");
  tree.write("tools/two.cpp", "namespace {\nclass Outer {\n  enum class Thing { none };\n};\n}\n");
  tree.write("device/three.cu", "namespace {\nunion Word { int x; };\n}\n");
  tree.write("decode/deep/four.cpp", "namespace {\nenum Word { kNone };\n}\n");
  EXPECT_EQ(duplicates(types_below(tree.root())),
            (std::vector<std::string>{"Thing: cases/one.h:1 tools/two.cpp:3",
                                      "Word: decode/deep/four.cpp:2 device/three.cu:2"}));
}

}  // namespace type_names_test
}  // namespace plumb::tests
