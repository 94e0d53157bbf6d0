// SPDX-License-Identifier: Apache-2.0
//
// A Problem whose tensors and launch come from the op's table. P is the op's C struct.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cases/tables/op_table.h"
#include "cases/tables/problem.h"

namespace plumb::cases {

// The part that is independent of the struct's type P.
class ProblemOfTable : public Problem {
 public:
  // Throws BadRow for parameters that the table refuses.
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
  // Hook for ops whose cases place rows of a tensor far apart on the device.
  virtual void place(TensorSpec&) const {}
  void* params() { return params_.data(); }

 private:
  // The bytes of the op's struct as passed to the launch.
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
  P& p_;  // scalars as passed to the op; pointers are null
};

// OpDefinition::make_problem for a Problem that is constructed from a row and a platform.
template <class T>
std::unique_ptr<Problem> make_problem_of(const Row& row, const device::Properties& platform) {
  return std::make_unique<T>(row, platform);
}

}  // namespace plumb::cases
