// SPDX-License-Identifier: Apache-2.0
//
// Rules for the files of this repository. Vendor names are allowed in back ends only, because a
// kernel or case that uses one runs on that vendor's devices only. A folder includes only folders
// below it. Folders and files have a maximum size.
#include "tests/support/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace plumb::tests {
namespace source_tree_test {

namespace fs = std::filesystem;

// An identifier or header of the CUDA or HIP runtime, or an intrinsic of their device languages.
bool has_vendor_name(const std::string& line) {
  static const std::regex name(
      R"((^|[^A-Za-z0-9_])((cuda|hip)[A-Z][A-Za-z0-9]*|__(shfl|syncthreads|syncwarp|ballot|global__|shared__|device__|launch_bounds__)[a-z_]*)|[<"](cuda|hip)(_|/)[a-z0-9_]+\.h)");
  return std::regex_search(line, name);
}

bool may_use_vendor_names(const fs::path& relative) {
  for (const char* folder :
       {"device/cuda/", "device/hip/", "examples/", "tests/cuda/", "tests/must_fail/"}) {
    if (relative.string().starts_with(folder)) return true;
  }
  return relative == fs::path("tests/source_tree_test.cpp");
}

const std::vector<std::string>& top_folders() {
  static const std::vector<std::string> folders{
      "reference", "device", "cases",    "decode",  "faults", "golden", "bisect", "diagnosis",
      "tests",     "tools",  "examples", "process", "python", "hdf5",   "trace"};
  return folders;
}

std::vector<fs::path> sources() {
  return files_below(PLUMB_SOURCE_DIR, top_folders(), {".h", ".c", ".cpp", ".cu"});
}

TEST(SourceTree, VendorNamesAreRecognised) {
  for (const char* line :
       {"cudaMalloc(&x, 4);", "  hipStream_t s;", "__syncthreads();", "#include <cuda_runtime.h>",
        "#include <hip/hip_runtime.h>", "x = __shfl_xor_sync(m, x, 1);", "__global__ void f();"}) {
    EXPECT_TRUE(has_vendor_name(line)) << line;
  }
  for (const char* line :
       {"sim-sm90, cuda-sm90, hip-gfx942", "// as on CUDA and HIP", "block_sync();",
        "#include \"device/cuda/open.h\"", "whiplash", "barracuda(1)"}) {
    EXPECT_FALSE(has_vendor_name(line)) << line;
  }
}

TEST(SourceTree, VendorNamesStandInTheirFoldersOnly) {
  const std::vector<fs::path> all = sources();
  EXPECT_GT(all.size(), 100u);
  for (const fs::path& path : all) {
    if (may_use_vendor_names(path)) continue;
    std::ifstream file(fs::path(PLUMB_SOURCE_DIR) / path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      EXPECT_FALSE(has_vendor_name(line)) << path.string() << ":" << number << ": " << line;
    }
  }
}

TEST(SourceTree, EveryFileStartsWithItsLicence) {
  for (const fs::path& path : sources()) {
    std::ifstream file(fs::path(PLUMB_SOURCE_DIR) / path);
    std::string line;
    std::getline(file, line);
    EXPECT_NE(line.find("SPDX-License-Identifier: Apache-2.0"), std::string::npos) << path;
  }
}

// A job, its folders, and the other jobs whose headers it may include.
struct Unit {
  std::string name;
  std::vector<std::string> folders, may_include;
};

const std::vector<Unit>& units() {
  static const std::vector<Unit> all = [] {
    using Names = std::vector<std::string>;
    const auto with = [](Names names, const Names& more) {
      names.insert(names.end(), more.begin(), more.end());
      return names;
    };
    const Names ground{"reference", "device"};
    const Names tables = with(ground, {"tensors", "judge"});
    const Names drivers = with(tables, {"tables"});
    const Names ops = with(drivers, {"drivers"});
    const Names cases = with(ops, {"ops", "studies"});
    const Names watch = with(ops, {"ops", "decode engine"});
    const Names faults = with(watch, {"decode watch"});
    const Names diagnosis = with(faults, {"faults"});
    const Names bisect = with(diagnosis, {"diagnosis", "process"});
    return std::vector<Unit>{
        {"reference", {"reference"}, {}},
        {"process", {"process"}, {}},
        {"device remote", {"device/remote"}, {"device", "process"}},
        {"device", {"device"}, {}},
        {"decode engine",
         {"decode/engine", "decode/models", "decode/metadata", "decode/graphs", "decode/policies"},
         {"device"}},
        {"tensors", {"cases/tensors"}, ground},
        {"judge", {"cases/judge"}, {"reference", "tensors"}},
        {"tables", {"cases/tables", "cases/recorded"}, tables},
        {"drivers", {"cases/drivers"}, drivers},
        {"ops", {"cases/ops"}, ops},
        {"own ops", {"cases/own_op"}, with(tables, {"tables"})},
        {"studies", {"cases/studies"}, ops},
        {"decode watch",
         {"decode/recording", "decode/checks", "decode/schedule", "decode/watch"},
         watch},
        {"faults", {"faults"}, faults},
        {"diagnosis", {"diagnosis"}, diagnosis},
        {"hdf5", {"hdf5"}, {}},
        {"golden", {"golden"}, with(cases, {"process", "hdf5"})},
        {"trace", {"trace"}, with(cases, {"process", "hdf5"})},
        {"bisect", {"bisect"}, bisect},
        {"tools",
         {"tools"},
         with(bisect,
              {"studies", "golden", "bisect", "trace", "hdf5", "device remote", "own ops"})}};
  }();
  return all;
}

const Unit* unit_of(const fs::path& path) {
  for (const Unit& unit : units()) {
    for (const std::string& folder : unit.folders) {
      if (path.string().starts_with(folder + "/")) return &unit;
    }
  }
  return nullptr;
}

// Path of the included file relative to the root; "" for a file of the same folder or one generated
// by the build.
fs::path included_by(const fs::path& file, const std::string& line) {
  static const std::regex include(R"re(\s*#\s*include\s*"([^"]+)".*)re");
  std::smatch found;
  if (!std::regex_match(line, found, include)) return {};
  const fs::path named = found[1].str();
  const std::string first = *named.begin();
  if (first == "..") return (file.parent_path() / named).lexically_normal();
  const auto& top = top_folders();
  return std::find(top.begin(), top.end(), first) == top.end() ? fs::path() : named;
}

// Lines such as "cases/a.h:3: tensors may not include decode watch (decode/watch/watch.h)".
std::vector<std::string> forbidden_includes(const fs::path& root) {
  std::vector<std::string> found;
  const std::vector<std::string> folders{"reference", "device",    "cases",  "decode", "faults",
                                         "golden",    "diagnosis", "bisect", "tools",  "process"};
  for (const fs::path& path : files_below(root, folders, {".h", ".cpp", ".cu"})) {
    const Unit* from = unit_of(path);
    if (from == nullptr) {
      found.push_back(path.string() + ": its folder is not in the table");
      continue;
    }
    std::ifstream file(root / path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const fs::path included = included_by(path, line);
      if (included.empty()) continue;
      const Unit* to = unit_of(included);
      const auto& may = from->may_include;
      if (to == from || (to && std::find(may.begin(), may.end(), to->name) != may.end())) continue;
      found.push_back(path.string() + ":" + std::to_string(number) + ": " + from->name +
                      " may not include " + (to ? to->name : "it") + " (" + included.string() +
                      ")");
    }
  }
  return found;
}

TEST(SourceTree, FoldersIncludeOnlyThoseBelowThem) {
  for (const std::string& line : forbidden_includes(PLUMB_SOURCE_DIR)) ADD_FAILURE() << line;
}

TEST(SourceTree, AForbiddenIncludeIsFound) {
  const PlantedTree tree;
  tree.write("cases/drivers/run.h", "#include <vector>\n\n#include \"decode/watch/watch.h\"\n");
  tree.write("decode/engine/a.cpp", "#include \"device/device.h\"\n#include \"calls.h\"\n");
  tree.write("decode/models/b.cpp", "  #  include \"cases/tensors/tensor.h\"  // why\n");
  tree.write("device/kernels/c.cu", "#include \"../../reference/bound.h\"\n");
  tree.write("golden/d.cpp", "#include \"tests/support/source_tree.h\"\n");
  tree.write("cases/other/e.h", "");
  EXPECT_EQ(
      forbidden_includes(tree.root()),
      (std::vector<std::string>{
          "cases/drivers/run.h:3: drivers may not include decode watch (decode/watch/watch.h)",
          "cases/other/e.h: its folder is not in the table",
          "decode/models/b.cpp:1: decode engine may not include tensors (cases/tensors/tensor.h)",
          "device/kernels/c.cu:1: device may not include reference (reference/bound.h)",
          "golden/d.cpp:1: golden may not include it (tests/support/source_tree.h)"}));
}

// Lines such as "cases/ops: 36 sources", one per folder with more than 35 sources.
std::vector<std::string> full_folders(const fs::path& root) {
  constexpr int kMost = 35;
  std::map<std::string, int> sources_in;
  for (const fs::path& path : files_below(root, top_folders(), {".h", ".cpp", ".cu", ".toml"})) {
    ++sources_in[path.parent_path().string()];
  }
  std::vector<std::string> found;
  for (const auto& [folder, sources] : sources_in) {
    if (sources > kMost) found.push_back(folder + ": " + std::to_string(sources) + " sources");
  }
  return found;
}

TEST(SourceTree, FoldersHoldAtMost35Sources) {
  for (const std::string& line : full_folders(PLUMB_SOURCE_DIR)) ADD_FAILURE() << line;
}

TEST(SourceTree, AFullFolderIsFound) {
  const PlantedTree tree;
  const auto plant = [&](const std::string& folder, int sources) {
    const char* const kinds[] = {".h", ".cpp", ".cu", ".toml"};
    for (int i = 0; i < sources; ++i) {
      tree.write(folder + "/file" + std::to_string(i) + kinds[i % 4], "");
    }
  };
  plant("cases/ops/norm", 36);
  plant("tools", 35);
  tree.write("tools/CMakeLists.txt", "");
  EXPECT_EQ(full_folders(tree.root()), (std::vector<std::string>{"cases/ops/norm: 36 sources"}));
}

// Lines such as "tools/run.cpp: 401 lines", one per source with more than 400 lines.
std::vector<std::string> long_files(const fs::path& root) {
  constexpr int kMost = 400;
  std::vector<std::string> found;
  for (const fs::path& path : files_below(root, top_folders(), {".h", ".cpp", ".cu"})) {
    std::ifstream file(root / path);
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    if (lines > kMost) found.push_back(path.string() + ": " + std::to_string(lines) + " lines");
  }
  return found;
}

TEST(SourceTree, FilesHaveAtMost400Lines) {
  EXPECT_EQ(long_files(PLUMB_SOURCE_DIR), std::vector<std::string>{});
}

TEST(SourceTree, ALongFileIsFound) {
  const PlantedTree tree;
  const auto lines = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "//\n";
    return text;
  };
  tree.write("tools/run.cpp", lines(401));
  tree.write("cases/judge/judge.h", lines(400));
  EXPECT_EQ(long_files(tree.root()), (std::vector<std::string>{"tools/run.cpp: 401 lines"}));
}

}  // namespace source_tree_test
}  // namespace plumb::tests
