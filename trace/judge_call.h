// SPDX-License-Identifier: Apache-2.0
//
// Judges one recorded call.
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

// Verdict on one call.
struct CallReport : CallPlace {
  std::string not_judged;             // why the call was not judged; "": judged
  std::vector<std::string> failures;  // one line each; empty if the call passed
  double margin = 0;                  // largest error / bound
  std::string profile;                // profile that it was judged by: "vllm.toml:12"; "": none
  std::int64_t rows = 0, rows_judged = 0;  // if judged by a sample of rows; 0: all rows
  // For calls that did not pass: "out: 3 elements are NaN, the first at [0, 4], and no input has
  // one". -infinity is not counted, because masks write it.
  std::string non_finite;

  bool passed() const { return not_judged.empty() && failures.empty(); }
  bool failed() const { return not_judged.empty() && !failures.empty(); }
};

// Reads the bytes of a step's tensors from its own file, or from a file of constants of its rank.
class StepBytes {
 public:
  // Throws BadTrace.
  explicit StepBytes(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::string text() const { return file_.text(); }
  // Bytes of a tensor, which must not be redacted. Throws BadTrace.
  StoredBytes of(const TraceTensor& tensor) const;

 private:
  StepFile file_;
  std::vector<std::unique_ptr<StepFile>> constants_;
};

// Throws BadTrace for a damaged trace. A call that cannot be judged is not an error: the report
// says why. Each call mixes its number into the seed of `sampling`.
CallReport judge_call(const TraceStep& step, std::size_t index, const StepBytes& bytes,
                      const cases::RowSampling& sampling = {});

}  // namespace plumb::trace
