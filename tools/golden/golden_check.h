// SPDX-License-Identifier: Apache-2.0
//
// Compares results of a run with their goldens: stored earlier results of the same cases.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cases/drivers/run.h"
#include "decode/schedule/any_case.h"
#include "decode/watch/call_digests.h"
#include "golden/compare.h"
#include "golden/store.h"

namespace plumb::tools {

struct GoldenArguments;
struct Selection;

// Folder of the store of an installed plumb, else of the repository; "" if neither is there.
std::string own_goldens();

// Folder that the command line names, or plumb's own. Throws UsageError if there is none.
std::string golden_folder_of(const GoldenArguments& arguments);

// The same for a command that changes the store. Throws UsageError if the store is that of an
// installed plumb, or is in a folder that cannot be written.
std::string changed_golden_folder_of(const GoldenArguments& arguments);

// What `golden regen` needs to store results of the same cases and kernels in the same store, each
// option after a space: " --plugin FILE --cases FILE --goldens FOLDER".
std::string regen_options(const Selection& selection, const std::optional<std::string>& goldens);

// Throws UsageError unless the reason for a changed golden is one line of text.
void require_reason(const std::string& reason);

// Thread-safe. Each file is read once.
class GoldenChecker {
 public:
  // `regen_options`: those of this run, for the line that says how to store a missing golden.
  explicit GoldenChecker(const std::string& folder, std::string regen_options = "")
      : store_(folder), regen_options_(std::move(regen_options)) {}

  const golden::Store& store() const { return store_; }
  // Throws golden::GoldenError for an unusable file.
  const golden::CaseGolden* find(const std::string& platform, const cases::AnyCase& which);
  // Launches the case again as for its golden, and compares. A case that should have a golden but
  // has none fails, unless the platform has no goldens at all. Throws GoldenError.
  golden::GoldenComparison check(const cases::Case& which, const cases::RunOptions& options,
                                 bool exact);
  golden::GoldenComparison check(const cases::StepCase& which, const cases::RunOptions& options,
                                 bool exact);
  // As check, for steps that ran already.
  golden::GoldenComparison check_steps(const cases::StepCase& which,
                                       const cases::RunOptions& options,
                                       const cases::CallDigests& steps, bool exact);
  // Compares the golden with a launch that the run made anyway. nullopt if there is no golden, or
  // if the results differ.
  std::optional<golden::GoldenComparison> check_launched(const cases::Case& which,
                                                         const cases::RunOptions& options,
                                                         const golden::CaseGolden& launched);

 private:
  // The failure of a case that should have a golden and has none.
  golden::GoldenComparison missing(const std::string& platform, const std::string& id) const;

  golden::Store store_;
  std::string regen_options_;
  std::mutex mutex_;
  std::map<std::string, std::optional<golden::GoldenFile>> files_;
};

}  // namespace plumb::tools
