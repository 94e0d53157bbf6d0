// SPDX-License-Identifier: Apache-2.0
//
// A case with the inputs of a recorded call. The op's own Problem launches and judges. This class
// supplies the tensors and fills them with the recorded bytes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/registry.h"
#include "cases/tensors/row_axis.h"

namespace plumb::cases {

// Keeps the call of a file for the cases of this process, and returns its row as a case file.
// Throws BadRow (one line with `path`). Not thread-safe.
CaseFile take_recorded(std::string bytes, const std::string& path);

bool is_recorded(const Row& row);

// The same op, whose make_problem returns a RecordedProblem for recorded rows.
OpDefinition with_recorded_rows(OpDefinition op);

// Indices of the recorded call's rows that `row` keeps. Throws BadRow.
std::vector<std::int64_t> kept_rows(const OpDefinition& op, const Row& row);

class RecordedProblem final : public Problem {
 public:
  // `op`: a definition whose make_problem ignores recordings. Throws BadRow (one line with the
  // file).
  RecordedProblem(const OpDefinition& op, const Row& row, const device::Properties& platform);

  std::int64_t capacity() const override { return own_->capacity(); }
  TensorSet make_tensors() const override;
  // Fills the recorded bytes in every step. If the op's rows are independent, only the first judged
  // step of an eager, full_graph or composition case has the rows in the recorded order. All other
  // steps have them in another order, so that a replay that reads old inputs gives wrong results.
  // Throws BadRow for inputs that the reference refuses.
  void fill(const Step& step, TensorSet& tensors) const override;
  std::unique_ptr<OpState> make_state(const DeviceTensors& tensors) const override;
  plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors, OpState* state,
                      device::Stream stream) const override;
  plumb_numerics declared(const device::OpEntry& entry, const DeviceTensors& tensors,
                          OpState* state, device::Stream stream) const override;
  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics,
                      const plumb_numerics& declared) const override;
  Expectations expect_sample(const Step& step, const TensorSet& tensors,
                             const reference::Numerics& numerics,
                             const plumb_numerics& declared) const override;
  Expectations expect_whole(const Step& step, const TensorSet& tensors,
                            const reference::Numerics& numerics,
                            const plumb_numerics& declared) const override;
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override;
  RowMask promised_rows_by_inputs(const Step& step, const TensorSet& tensors,
                                  const TensorSpec& spec) const override;
  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec& spec) const override;
  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics& declared) const override;
  // Defined in cases/drivers/composition.cpp.
  std::unique_ptr<Composition> composition() const override;
  // False, so that the problem is never filled with repeated rows (tiled_problem.h): these would be
  // other inputs than the recorded ones.
  bool rows_have_places() const override { return false; }
  double cost() const override { return own_->cost(); }
  double reference_cost() const override { return own_->reference_cost(); }
  ReferenceWork reference_work() const override { return own_->reference_work(); }
  double moved_bytes(const TensorSet& tensors) const override { return own_->moved_bytes(tensors); }
  double checked_factor() const override { return own_->checked_factor(); }

 private:
  Step recorded_step() const;
  std::vector<std::int64_t> order_of(const Step& step) const;  // empty: as recorded
  void keep_few(const OpDefinition& op, const Row& row, const device::Properties& platform,
                const std::vector<std::int64_t>& kept);
  void check_values() const;

  std::string op_, path_, inputs_;  // inputs_: text that identifies the inputs
  std::shared_ptr<const Problem> own_;
  TensorSet tensors_;                                 // inputs with the recorded bytes
  std::map<std::string, RowAxis, std::less<>> axes_;  // row dimension of each tensor that has rows
  std::int64_t rows_ = 0;                             // number of rows that axes_ refer to
  // Seeds of the steps whose rows keep the recorded order.
  std::vector<std::uint64_t> as_recorded_;
};

}  // namespace plumb::cases
