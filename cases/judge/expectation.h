// SPDX-License-Identifier: Apache-2.0
//
// The expected contents of the tensors of a call. Problem::expect computes them from the bytes of
// the call, and compare() checks the stored bytes against them. Goldens, benchmarks, and runs that
// replace an op by its reference use the same expectations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cases/judge/judge.h"
#include "cases/judge/phase.h"
#include "cases/tensors/tensor.h"
#include "reference/bound.h"

namespace plumb::reference {
struct CodeEstimate;
struct ScoredChoices;
}  // namespace plumb::reference

namespace plumb::cases {

class RightValues;

// The expected contents of one tensor.
class Truth {
 public:
  virtual ~Truth() = default;
  // Rows and columns that are not promised are not compared.
  virtual TensorReport compare(const HostTensor& stored, const RowMask& promised,
                               const ColumnRanges& columns) const = 0;
  // Adds the expected bits of the promised elements. The default adds none.
  virtual void put(const HostTensor&, const RowMask&, const ColumnRanges&, RightValues&) const {}
  // Values and error model of a floating-point tensor, null for other tensors.
  virtual const reference::Estimate* estimate() const { return nullptr; }
};

// The expectation of one tensor. If one output depends on another (codes on scales, weights on the
// chosen experts), its expected contents follow from the stored bytes of the other output.
struct Expectation {
  // The output as stored, or a part of the output (TensorSpec::origin).
  std::shared_ptr<const HostTensor> stored;
  std::shared_ptr<const Truth> truth;
  RowMask promised = {};  // empty: all rows
  ColumnRanges columns = {};
  std::string basis = {};  // appended to the tensor's name in the report: " (end to end)"
};
using Expectations = std::vector<Expectation>;

TensorReport compare(const Expectation& expectation);
std::vector<TensorReport> compare(const Expectations& expectations);
void append(Expectations more, Expectations& to);

// Expectations for the verdicts of judge.h, judge_codes.h and judge_choices.h. An expectation owns
// all its data, so the tensors of the call may be destroyed first.
Expectation expect_floats(const HostTensor& stored, reference::Estimate estimate, RowMask promised,
                          std::vector<RowGroup> groups, ColumnRanges columns = {});
Expectation expect_exact(const HostTensor& stored, std::vector<std::int64_t> values,
                         RowMask promised);
// Expects the bits of `right`. `what`: text of a failure, "differs from the residual".
Expectation expect_bits(const HostTensor& stored, HostTensor right, RowMask promised,
                        std::string_view what);
Expectation expect_codes(const HostTensor& stored, reference::CodeEstimate codes, RowMask promised);
Expectation expect_choices(const HostTensor& ids, reference::ScoredChoices choices);

}  // namespace plumb::cases
