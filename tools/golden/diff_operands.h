// SPDX-License-Identifier: Apache-2.0
//
// What "plumb golden diff A B" can name: a golden file, a platform of the store, a git revision of
// it, or one platform of a revision.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "golden/store.h"

namespace plumb::tools {

struct DiffOperand {
  struct Entry {
    std::string platform, op;
    std::string digest;  // of the file: equal ones need not be read
    std::function<golden::GoldenFile()> load;
  };
  std::string name;
  std::vector<Entry> entries;
  bool is_file = false;
};

// Files that are not the store's own are read in a process of their own. Throws UsageError for a
// name that is none of these, GoldenError for what cannot be used.
DiffOperand diff_operand(const std::string& name, const golden::Store& store);

// A golden file from anywhere.
golden::GoldenFile read_golden_file(const std::string& path, std::string* digest = nullptr);

}  // namespace plumb::tools
