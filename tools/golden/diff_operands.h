// SPDX-License-Identifier: Apache-2.0
//
// Operands of "plumb golden diff A B": a golden file, a platform of the store, a git revision of
// the store, or one platform of a revision.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "golden/store.h"

namespace plumb::tools {

struct DiffOperand {
  struct Entry {
    std::string platform, op;
    std::string digest;  // of the file; files with equal digests are not read
    std::function<golden::GoldenFile()> load;
  };
  std::string name;
  std::vector<Entry> entries;
  bool is_file = false;
};

// Files outside the store are read in a separate process. Throws UsageError for a name that is not
// an operand, GoldenError for unusable data.
DiffOperand diff_operand(const std::string& name, const golden::Store& store);

// Reads a golden file from any path.
golden::GoldenFile read_golden_file(const std::string& path, std::string* digest = nullptr);

}  // namespace plumb::tools
