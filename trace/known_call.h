// SPDX-License-Identifier: Apache-2.0
//
// A recorded call of one of plumb's ops, as a call that was made outside plumb.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/studies/outside_call.h"
#include "trace/judge_call.h"

namespace plumb::trace {

// Why a call is not judged.
class NotJudged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// In a catch clause: why the call cannot be judged. Its inputs may be those of no right call:
// indices outside of a tensor, lengths below zero. Rethrows BadTrace and bad_alloc.
std::string why_not_judged();

bool is_known_op(const std::string& op);

// Throws cases::BadRow for a word that the numerics do not have.
cases::NumericSettings settings_of(const std::map<std::string, TraceScalar>& numerics);

class KnownCall {
 public:
  // Throws NotJudged, cases::BadRow for a call that the op does not have, and BadTrace.
  // The call's profile counts where the call does not say anything.
  // Of a call that is judged by a sample only these rows are in the tensors.
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
