// SPDX-License-Identifier: Apache-2.0
//
// One op at one shape: its tensors, their inputs, the launch, and the expected outputs. Scenarios
// drive a Problem without knowing its op.
#pragma once

#include <plumb/ops/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/tables/row.h"
#include "cases/tensors/step.h"
#include "cases/tensors/tensor.h"
#include "device/device.h"
#include "reference/bound.h"

namespace plumb::cases {

// Host-side state of an op that outlives a call (FlashMLA's lazily planned metadata).
struct OpState {
  virtual ~OpState() = default;
};

class Composition;  // cases/drivers/composition.h
class OpTable;      // cases/tables/op_table.h

// The minimal work of a reference at one shape. plumb bench --only ops compares the reference's
// time with the machine's time for this work.
struct ReferenceWork {
  double bytes = 0;  // inputs are read once, results (value, sigma, worst) written once
  // For the values only, not for the error model; one counts as two operations.
  double multiply_adds = 0;
  double exps = 0, logs = 0, rsqrts = 0;
};

class Problem {
 public:
  virtual ~Problem() = default;

  // Number of rows including padding: the captured size. Scenarios choose live counts in [0,
  // capacity].
  virtual std::int64_t capacity() const = 0;
  // All tensors, with zero bytes.
  virtual TensorSet make_tensors() const = 0;
  // Writes every input, for live and dead rows. `tensors` still holds the previous step's inputs:
  // with DeadRows::foreign, dead rows keep them. Must depend on `step` only.
  virtual void fill(const Step& step, TensorSet& tensors) const = 0;
  virtual std::unique_ptr<OpState> make_state(const DeviceTensors&) const { return nullptr; }
  // Enqueues the op at its padded shape.
  virtual plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors,
                              OpState* state, device::Stream stream) const = 0;
  // Numerics that the entry declares for a launch with these arguments.
  virtual plumb_numerics declared(const device::OpEntry& entry, const DeviceTensors&, OpState*,
                                  device::Stream) const {
    return entry.numerics;
  }
  // Expectations of all outputs (and visible intermediates). `tensors` holds the inputs and the
  // outputs as the device stored them.
  virtual Expectations expect(const Step& step, const TensorSet& tensors,
                              const reference::Numerics& numerics,
                              const plumb_numerics& declared) const = 0;
  // True if row i of every tensor with rows depends only on row i of the others. False if rows of
  // varying length are packed, or if the output depends on the number of rows.
  virtual bool rows_have_places() const { return true; }
  // Expectations for a problem whose rows were picked from a larger one, with their inputs, outputs
  // and scratch. Leaves out tensors that depend on a plan of the whole launch, because the plan is
  // not part of the picked rows.
  virtual Expectations expect_sample(const Step& step, const TensorSet& tensors,
                                     const reference::Numerics& numerics,
                                     const plumb_numerics& declared) const {
    return expect(step, tensors, numerics, declared);
  }
  // Expectations of tensors that belong to the whole launch and have no rows (a tile plan). Used if
  // only a sample of the rows is judged.
  virtual Expectations expect_whole(const Step&, const TensorSet&, const reference::Numerics&,
                                    const plumb_numerics&) const {
    return {};
  }
  // Compares all expectations with the stored outputs. Problems that judge a sample of rows, or
  // compare with other ops, override this. Adds the time to `seconds`.
  virtual std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                          const reference::Numerics& numerics,
                                          const plumb_numerics& declared,
                                          VerdictSeconds& seconds) const;
  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared) const {
    VerdictSeconds seconds;
    return judge(step, tensors, numerics, declared, seconds);
  }
  // Rows of the tensor whose bits an op promises to repeat (replay against eager, run against run).
  // Empty: all rows.
  virtual RowMask promised_rows(const Step&, const TensorSpec&) const { return {}; }
  // As promised_rows, for ops where these rows also depend on the inputs (lengths that make a
  // plan).
  virtual RowMask promised_rows_by_inputs(const Step& step, const TensorSet&,
                                          const TensorSpec& spec) const {
    return promised_rows(step, spec);
  }
  // The sequence of plain ops that the fused op replaced. null unless OpDefinition::fused says so.
  virtual std::unique_ptr<Composition> composition() const;
  // If the declaration permits several right results (any order of selected indices), the tensor in
  // one fixed form, so that results can be compared bit for bit. nullopt: compare it unchanged.
  virtual std::optional<HostTensor> canonical(const TensorSet&, const TensorSpec&,
                                              const plumb_numerics&) const {
    return std::nullopt;
  }
  // Columns of each output row that the op promises, for the inputs in `tensors`. Empty: all
  // columns.
  virtual ColumnRanges promised_columns(const TensorSet&, const TensorSpec&) const { return {}; }
  // Simulated work of one launch, from which a tier decides how many launches it can afford. In
  // nanoseconds of plain kernels on an idle core, within a factor of 2: about 1 per scalar
  // operation in a loop, and kShuffleCost or kBarrierCost per thread and operation. plumb bench
  // --only cost checks it.
  virtual double cost() const = 0;
  // Nanoseconds of the reference for one verdict, without the judge's time per element.
  virtual double reference_cost() const { return 0; }
  // Work of the reference for one verdict, without visible intermediates. The default counts bytes
  // only.
  virtual ReferenceWork reference_work() const;
  // Bytes that a launch at full capacity must read and write. The default counts each input and
  // output once, which is too much for an op that accesses only parts of a tensor.
  virtual double moved_bytes(const TensorSet& tensors) const;
  // Run time of checked kernels (built so that the simulator checks every memory access) relative
  // to plain ones. It grows with the op's share of memory accesses.
  virtual double checked_factor() const { return 8; }
};

// Bytes of the inputs that a reference reads, and of the results that it returns for the outputs.
double reference_bytes(const TensorSet& tensors);

inline constexpr double kShuffleCost = 40, kBarrierCost = 20;

// One op. cases/ops/<family>/<op>.cpp defines `OpDefinition define_<op>()`.
struct OpDefinition : RowSchema {
  // Throws BadRow for an impossible combination of parameters.
  std::function<std::unique_ptr<Problem>(const Row&, const device::Properties&)> make_problem;
  // True if this row's Problem has a composition(); the row then gets a case of that scenario.
  // Unset: no row has.
  std::function<bool(const Row&)> fused = {};
  // Name of the parameter that counts rows, if rows are independent of each other and of their
  // number. A problem that is too large for the reference is then judged on a sample of its rows
  // (cases/drivers/tiled_problem.h). Empty: always judged as a whole.
  std::string_view row_count = {};
  // Table of the op. null only for ops that tests define.
  const OpTable* table = nullptr;
};

// Name of the parameter to which the op's capacity is proportional: "tokens". "" if there is none.
// Throws BadRow if the row cannot have one or two of them.
std::string batch_parameter(const OpDefinition& op, const Row& row,
                            const device::Properties& properties);

reference::Numerics to_reference(const plumb_numerics& declared);

}  // namespace plumb::cases
