// SPDX-License-Identifier: Apache-2.0
//
// Rules about where things may stand in this repository. Vendor names belong to the back ends: a
// kernel or a case that uses one runs on one vendor's device only.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// An identifier or header of the CUDA or HIP runtime, or an intrinsic of their device languages.
bool has_vendor_name(const std::string& line) {
  static const std::regex name(
      R"((^|[^A-Za-z0-9_])((cuda|hip)[A-Z][A-Za-z0-9]*|__(shfl|syncthreads|syncwarp|ballot|global__|shared__|device__|launch_bounds__)[a-z_]*)|[<"](cuda|hip)(_|/)[a-z0-9_]+\.h)");
  return std::regex_search(line, name);
}

bool may_use_vendor_names(const fs::path& relative) {
  for (const char* folder : {"device/cuda/", "device/hip/", "examples/", "tests/must_fail/"}) {
    if (relative.string().starts_with(folder)) return true;
  }
  return relative == fs::path("tests/source_tree_test.cpp");
}

std::vector<fs::path> sources() {
  std::vector<fs::path> found;
  const fs::path root = PLUMB_SOURCE_DIR;
  for (const char* folder : {"reference", "device", "cases", "tests", "tools", "golden", "bisect",
                             "examples", "decode", "faults", "diagnosis"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string kind = entry.path().extension();
      if (kind == ".h" || kind == ".c" || kind == ".cpp" || kind == ".cu") {
        found.push_back(fs::relative(entry.path(), root));
      }
    }
  }
  return found;
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

}  // namespace
