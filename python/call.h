// SPDX-License-Identifier: Apache-2.0
//
// One call of an op as Python hands it over, judged.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/tables/alternative.h"
#include "cases/tables/given_call.h"

namespace plumb::python {

// Numerics that the kernel promises; what is not named is as in plumb's own kernel.
using NumericSettings = std::map<std::string, double>;

// The problem of one call and what is right of its outputs.
class JudgedArrays {
 public:
  // Throws cases::BadRow for a call that the op does not have.
  JudgedArrays(const std::string& op, const cases::GivenCall& call, const NumericSettings& numerics,
               bool needs_outputs);

  const cases::Row& row() const { return row_; }
  // Of all outputs, given or not.
  cases::Expectations expect(const cases::TensorSet& tensors) const;
  const cases::TensorSet& tensors() const { return tensors_; }
  // Under which other values of the op's choices the given outputs are right. Of numerics one call
  // says too little: wider bounds cover small errors of any kind.
  std::vector<cases::Alternative> right_under(const cases::GivenCall& call) const;

 private:
  cases::Expectations expect(const cases::Problem& problem, const cases::TensorSet& tensors) const;

  const cases::OpDefinition& op_;
  cases::Row row_;
  plumb_numerics numerics_;
  std::unique_ptr<cases::Problem> problem_;
  cases::TensorSet tensors_;
};

// What a kernel promises that says nothing but this. Throws cases::BadRow for an unknown member or
// a value that it cannot have.
plumb_numerics numerics_with(const NumericSettings& settings);

// Throws cases::BadRow for an unknown name.
const cases::OpDefinition& known_op(const std::string& name);

}  // namespace plumb::python
