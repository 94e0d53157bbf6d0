// SPDX-License-Identifier: Apache-2.0
//
// A Problem whose tensors and launch come from its op's table. P is the op's C struct.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cases/tables/op_table.h"
#include "cases/tables/problem.h"

namespace plumb::cases {

// What does not depend on the struct's type.
class ProblemOfTable : public Problem {
 public:
  // Throws BadRow.
  ProblemOfTable(const OpTable& table, const Row& row, const device::Properties& platform);
  ~ProblemOfTable() override;

  std::int64_t capacity() const override { return capacity_; }
  TensorSet make_tensors() const override;
  std::unique_ptr<OpState> make_state(const DeviceTensors&) const override;
  plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors, OpState* state,
                      device::Stream stream) const override;
  plumb_numerics declared(const device::OpEntry& entry, const DeviceTensors& tensors,
                          OpState* state, device::Stream stream) const override;

 protected:
  // For tensors whose rows a case places far apart on the device.
  virtual void place(TensorSpec&) const {}
  void* params() { return params_.data(); }

 private:
  // The struct as the op gets it.
  std::vector<std::byte> bound(const device::OpEntry& entry, const DeviceTensors& tensors,
                               OpState* state, device::Stream stream) const;

  const OpTable& table_;
  Row row_;
  OpParams params_;
  std::int64_t capacity_ = 0;
};

template <class P>
class TableProblem : public ProblemOfTable {
 public:
  TableProblem(const OpTable& table, const Row& row, const device::Properties& platform)
      : ProblemOfTable(table, row, platform), p_(*static_cast<P*>(params())) {}

 protected:
  P& p_;  // scalars as the op gets them; no pointers
};

// OpDefinition::make_problem of a Problem that is made of a row and a platform.
template <class T>
std::unique_ptr<Problem> make_problem_of(const Row& row, const device::Properties& platform) {
  return std::make_unique<T>(row, platform);
}

}  // namespace plumb::cases
