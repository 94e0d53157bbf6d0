// SPDX-License-Identifier: Apache-2.0
//
// Converts a recorded call of one of plumb's ops to a call that was made outside plumb.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/studies/outside_call.h"
#include "trace/judge_call.h"

namespace plumb::trace {

// Thrown for a call that cannot be judged; what() says why.
class NotJudged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Call this in a catch clause: returns why the call cannot be judged. No right call may have such
// inputs (indices outside a tensor, negative lengths). Rethrows BadTrace and bad_alloc.
std::string why_not_judged();

bool is_known_op(const std::string& op);

// The numerics of a recorded call as numbers. Throws cases::BadRow for a word that its member of
// plumb_numerics cannot have. OutsideCall checks the names of members, and numbers.
cases::NumericSettings settings_of(const std::map<std::string, TraceScalar>& numerics);

class KnownCall {
 public:
  // Throws NotJudged, cases::BadRow for a call that the op cannot have, and BadTrace. The call's
  // profile supplies what the call does not say itself. If the call is judged by a sample, the
  // tensors hold only the sampled rows.
  KnownCall(const TraceCall& call, const StepBytes& bytes, const cases::RowSampling& sampling = {});
  KnownCall(const KnownCall&) = delete;
  KnownCall& operator=(const KnownCall&) = delete;

  const cases::OutsideCall& call() const { return *call_; }
  const cases::GivenCall& given() const { return given_; }

 private:
  void add(const std::string& name, const TraceTensor& tensor, const StepBytes& bytes);

  std::vector<StoredBytes> held_;
  cases::GivenCall given_;
  std::optional<cases::OutsideCall> call_;
};

}  // namespace plumb::trace
