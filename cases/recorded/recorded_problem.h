// SPDX-License-Identifier: Apache-2.0
//
// A case whose inputs are those of a recorded call. Its op's own Problem launches and judges; the
// fill alone is another one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/registry.h"
#include "cases/tensors/row_axis.h"

namespace plumb::cases {

// Keeps the call of a file for the cases of this process, and returns its row. Throws BadRow, one
// line with `path`. Not for several threads.
CaseFile take_recorded(std::string bytes, const std::string& path);

bool is_recorded(const Row& row);

// With inputs of recorded calls for rows that have one.
OpDefinition with_recorded_rows(OpDefinition op);

// Rows of the recorded call with this row that are kept. Throws BadRow.
std::vector<std::int64_t> kept_rows(const OpDefinition& op, const Row& row);

class RecordedProblem final : public Problem {
 public:
  // `op`: whose make_problem knows no recorded calls. Throws BadRow: one line with the file.
  RecordedProblem(const OpDefinition& op, const Row& row, const device::Properties& platform);

  std::int64_t capacity() const override { return own_->capacity(); }
  TensorSet make_tensors() const override;
  // Throws BadRow: inputs of which no result is right. The recorded bytes in every step. Where rows
  // have places of their own, steps behind the first one of a case have the same rows in another
  // order: a replay that reads old inputs shows.
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
  std::unique_ptr<Composition> composition() const override;  // cases/drivers/composition.cpp
  // No tiles: these would be other inputs.
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

  std::string op_, path_, inputs_;  // inputs_: a name of them
  std::shared_ptr<const Problem> own_;
  TensorSet tensors_;                                 // inputs with their bytes
  std::map<std::string, RowAxis, std::less<>> axes_;  // of tensors with rows
  std::int64_t rows_ = 0;                             // of axes_
  std::vector<std::uint64_t> as_recorded_;            // seeds of steps
};

}  // namespace plumb::cases
