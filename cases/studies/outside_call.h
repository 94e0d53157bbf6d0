// SPDX-License-Identifier: Apache-2.0
//
// Judges one call of an op that was made outside plumb: arrays passed from Python, or a recorded
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

// The platform that calls are judged for: waves of 32 and e4m3fn, as on an NVIDIA GPU. Words of the
// call override it.
inline constexpr const char* kCallPlatform = "sim-sm90";

// Numerics that the kernel declares. Members that are not named are as in plumb's own kernel.
using NumericSettings = std::map<std::string, double>;

// Members of plumb_numerics that are enums, with the words for their values in order.
const std::map<std::string, std::vector<std::string>>& numeric_words();
// The numeric value of a word of a member. Throws BadRow.
double numeric_word(const std::string& member, const std::string& word);

struct JudgedOutput {
  Expectation expected;
  TensorReport report;
};

struct CallVerdict {
  std::vector<JudgedOutput> outputs;  // outputs that the call has
  std::string right_if;  // for a failed call: "right if floor = 1e-4: declare it"; may be empty
  // Rows of the call and judged rows, if a sample was judged; 0: all rows were judged.
  std::int64_t rows = 0, rows_judged = 0;
  bool passed() const;  // false if the call has no judged output
};

// The problem of one call and the expectations of its outputs.
class OutsideCall {
 public:
  // `call` must outlive this object. Throws BadRow for a call that the op does not have. If only a
  // sample of the rows is judged, tensors() hold zeros in the other rows.
  OutsideCall(const std::string& op, const GivenCall& call, const NumericSettings& numerics,
              bool needs_outputs, const RowSampling& sampling = {});

  const OpDefinition& op() const { return op_; }
  const Row& row() const { return row_; }
  const Problem& problem() const { return *problem_; }
  const plumb_numerics& numerics() const { return numerics_; }
  bool is_given(const std::string& tensor) const { return call_.tensors.contains(tensor); }
  // Expectations of all outputs, given or not. Throws BadRow for inputs that the reference refuses.
  Expectations expect(const TensorSet& tensors) const;
  const TensorSet& tensors() const { return tensors_; }
  CallVerdict judge() const;

 private:
  Expectations expect(const Problem& problem, const TensorSet& tensors) const;
  // Expectations of the outputs that the call has, or of a sample of their rows.
  Expectations judged(const RecordedCall& call) const;
  // The other contracts under which a failed call is right. Numerics are not changed: one call is
  // too little evidence about them, because wider bounds cover small errors of any kind.
  std::vector<Alternative> right_under() const;
  Expectations given(Expectations all) const;

  const OpDefinition& op_;
  const GivenCall& call_;
  Row row_;
  plumb_numerics numerics_;
  std::unique_ptr<Problem> problem_;
  std::optional<RowChoice> choice_;  // rows to judge; nullopt: all
  std::int64_t rows_ = 0;            // number of rows that choice_ selects from
  NeededPlaces needed_;
  TensorSet tensors_;
};

// Numerics of a kernel that declares only these settings. Throws BadRow for an unknown member or an
// impossible value.
plumb_numerics numerics_with(const NumericSettings& settings);

// The op of this name. Throws BadRow for an unknown name.
const OpDefinition& known_op(const std::string& name);

}  // namespace plumb::cases
