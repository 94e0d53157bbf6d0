// SPDX-License-Identifier: Apache-2.0
//
// Results of a run beside their goldens.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cases/drivers/run.h"
#include "golden/compare.h"
#include "golden/store.h"

namespace plumb::tools {

// The repository's own store, "" if this build's repository is not there.
std::string own_goldens();

// The store that a command line names, or the repository's own. Throws UsageError if there is none.
struct GoldenArguments;
std::string golden_folder_of(const GoldenArguments& arguments);

// Throws UsageError: goldens change for a reason, said in one line.
void require_reason(const std::string& reason);

// For any number of threads: each file is read once.
class GoldenChecker {
 public:
  explicit GoldenChecker(const std::string& folder) : store_(folder) {}

  const golden::Store& store() const { return store_; }
  // Throws golden::GoldenError for a file that cannot be used.
  const golden::CaseGolden* find(const std::string& platform, const cases::Case& which);
  // Launches the case once more, as its golden was. A case that wants a golden and has none fails,
  // unless the platform has none at all. Throws GoldenError.
  golden::GoldenComparison check(const cases::Case& which, const cases::RunOptions& options,
                                 bool exact);
  // The comparison with what a run has launched anyway. Nothing if there is no golden, or another.
  std::optional<golden::GoldenComparison> check_launched(const cases::Case& which,
                                                         const cases::RunOptions& options,
                                                         const golden::CaseGolden& launched);

 private:
  golden::Store store_;
  std::mutex mutex_;
  std::map<std::string, std::optional<golden::GoldenFile>> files_;
};

}  // namespace plumb::tools
