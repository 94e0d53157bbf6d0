// SPDX-License-Identifier: Apache-2.0
//
// Reports of the differences between two stores, or between a store and new results: JSON and a
// page (docs/goldens.md).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "golden/regenerate.h"

namespace plumb::tools {

struct GoldenArguments;

struct DifferentCase {
  golden::Change change;
  std::string platform;    // "sim-sm90", or "sim-sm90, sim-gfx942" if they differ
  std::string because_of;  // traits of the platforms; "": same platform
};

struct GoldenDiff {
  std::string before, after;  // names of the two sides
  std::size_t same = 0;
  std::vector<DifferentCase> cases;
  std::map<std::string, std::string> results;  // digest of the results of each side that is a file

  // Number of different cases by cause.
  std::map<std::string, std::size_t> causes() const;
};

// Called before files are read. Throws UsageError for a report that cannot be written or that would
// replace a compared file.
void check_diff_reports(const GoldenArguments& arguments);
// Throws std::runtime_error.
void write_diff_reports(const GoldenArguments& arguments, const GoldenDiff& diff);
// False if JSON goes to standard output, which then has no text.
bool prints_text(const GoldenArguments& arguments);

}  // namespace plumb::tools
