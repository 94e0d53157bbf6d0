// SPDX-License-Identifier: Apache-2.0
//
// Lists the files of a source tree, and makes small trees in which a test breaks a rule.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::tests {

// Files below these folders with one of these extensions, relative to `root`, sorted.
inline std::vector<std::filesystem::path> files_below(const std::filesystem::path& root,
                                                      const std::vector<std::string>& folders,
                                                      const std::vector<std::string>& extensions) {
  namespace fs = std::filesystem;
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string kind = entry.path().extension();
      if (std::find(extensions.begin(), extensions.end(), kind) != extensions.end()) {
        found.push_back(fs::relative(entry.path(), root));
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A temporary tree of files. Removed by the destructor.
class PlantedTree {
 public:
  PlantedTree() {
    std::string name = std::filesystem::temp_directory_path() / "plumb-tree-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for a planted tree");
    root_ = name;
  }
  ~PlantedTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  PlantedTree(const PlantedTree&) = delete;
  PlantedTree& operator=(const PlantedTree&) = delete;

  void write(const std::filesystem::path& path, std::string_view text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace plumb::tests
