// SPDX-License-Identifier: Apache-2.0
//
// One recorded call, judged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/call_sample.h"
#include "trace/call_place.h"
#include "trace/step_file.h"
#include "trace/trace.h"

namespace plumb::trace {

// What came of one call.
struct CallReport : CallPlace {
  std::string not_judged;                  // why; "": judged
  std::vector<std::string> failures;       // lines; empty for a call that passed
  double margin = 0;                       // largest error / bound
  std::string profile;                     // "vllm.toml:12": by which it was judged; "": by none
  std::int64_t rows = 0, rows_judged = 0;  // of a call judged by a sample; 0: all
  // "out: 3 elements are NaN, the first at [0, 4], and no input has one": of calls that did not
  // pass. -infinity is a mask's, and is not looked at.
  std::string non_finite;

  bool passed() const { return not_judged.empty() && failures.empty(); }
  bool failed() const { return not_judged.empty() && !failures.empty(); }
};

// The bytes of a step's tensors: from its own file, or from a file of constants of its rank.
class StepBytes {
 public:
  // Throws BadTrace.
  explicit StepBytes(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::string text() const { return file_.text(); }
  // Of a tensor that is not redacted. Throws BadTrace.
  StoredBytes of(const TraceTensor& tensor) const;

 private:
  StepFile file_;
  std::vector<std::unique_ptr<StepFile>> constants_;
};

// Throws BadTrace for a damaged trace. A call that cannot be judged is no error: the report says
// why. Each call has a seed of its own in `sampling`.
CallReport judge_call(const TraceStep& step, std::size_t index, const StepBytes& bytes,
                      const cases::RowSampling& sampling = {});

}  // namespace plumb::trace
