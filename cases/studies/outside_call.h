// SPDX-License-Identifier: Apache-2.0
//
// One call of an op that somebody else made, judged: arrays handed over by Python, or a recorded
// call of an engine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/call_sample.h"
#include "cases/tables/alternative.h"
#include "cases/tables/given_call.h"

namespace plumb::cases {

// Waves of 32, e4m3fn: what an NVIDIA GPU of these models has. Words of the call say otherwise.
inline constexpr const char* kCallPlatform = "sim-sm90";

// Numerics that the kernel promises; what is not named is as in plumb's own kernel.
using NumericSettings = std::map<std::string, double>;

// Members of plumb_numerics whose values have words, and these in the order of their values.
const std::map<std::string, std::vector<std::string>>& numeric_words();
// The value of such a word. Throws BadRow.
double numeric_word(const std::string& member, const std::string& word);

struct JudgedOutput {
  Expectation expected;
  TensorReport report;
};

struct CallVerdict {
  std::vector<JudgedOutput> outputs;  // that the call has
  std::string right_if;  // of a failed call: "right if floor = 1e-4: declare it", or nothing
  std::int64_t rows = 0, rows_judged = 0;  // of a call that was judged by a sample; 0: all
  bool passed() const;                     // a call without a judged output does not pass
};

// The problem of one call and what is right of its outputs.
class OutsideCall {
 public:
  // The call has to outlive this. Throws BadRow for a call that the op does not have. If a sample
  // of its rows is judged, `tensors` have zeros in place of others.
  OutsideCall(const std::string& op, const GivenCall& call, const NumericSettings& numerics,
              bool needs_outputs, const RowSampling& sampling = {});

  const OpDefinition& op() const { return op_; }
  const Row& row() const { return row_; }
  const Problem& problem() const { return *problem_; }
  const plumb_numerics& numerics() const { return numerics_; }
  bool is_given(const std::string& tensor) const { return call_.tensors.contains(tensor); }
  // Of all outputs, given or not. Throws BadRow: inputs of which no output is right.
  Expectations expect(const TensorSet& tensors) const;
  const TensorSet& tensors() const { return tensors_; }
  CallVerdict judge() const;

 private:
  Expectations expect(const Problem& problem, const TensorSet& tensors) const;
  // Of the call's own outputs, or of chosen rows of them.
  Expectations judged(const RecordedCall& call) const;
  // Of numerics one call says too little: wider bounds cover small errors of any kind.
  std::vector<Alternative> right_under() const;
  Expectations given(Expectations all) const;

  const OpDefinition& op_;
  const GivenCall& call_;
  Row row_;
  plumb_numerics numerics_;
  std::unique_ptr<Problem> problem_;
  std::optional<RowChoice> choice_;  // rows that are judged; nothing: all
  std::int64_t rows_ = 0;            // of which they are chosen
  NeededPlaces needed_;
  TensorSet tensors_;
};

// What a kernel promises that says nothing but this. Throws BadRow for an unknown member or a value
// that it cannot have.
plumb_numerics numerics_with(const NumericSettings& settings);

// Throws BadRow for an unknown name.
const OpDefinition& known_op(const std::string& name);

}  // namespace plumb::cases
