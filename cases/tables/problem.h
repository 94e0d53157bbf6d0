// SPDX-License-Identifier: Apache-2.0
//
// One op at one shape: its tensors, how they are filled, how the op is called, and what is right.
// Scenarios drive a Problem without knowing which op it is.
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

// What the reference of an op cannot do without at one shape. plumb bench --only ops sets the
// reference's time against what the machine needs for this much.
struct ReferenceWork {
  double bytes = 0;          // inputs read once, results (value, sigma, worst) written once
  double multiply_adds = 0;  // of the values, two operations each; not of the error model
  double exps = 0, logs = 0, rsqrts = 0;
};

class Problem {
 public:
  virtual ~Problem() = default;

  // Padded rows: the captured size. Scenarios choose live counts in [0, capacity].
  virtual std::int64_t capacity() const = 0;
  // All tensors, zero bytes; called once.
  virtual TensorSet make_tensors() const = 0;
  // Writes every input, for live and dead rows. `tensors` still holds the previous step's inputs:
  // for DeadRows::foreign, dead rows keep them. Must depend on nothing else but `step`.
  virtual void fill(const Step& step, TensorSet& tensors) const = 0;
  virtual std::unique_ptr<OpState> make_state(const DeviceTensors&) const { return nullptr; }
  // Enqueues the op at its padded shape.
  virtual plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors,
                              OpState* state, device::Stream stream) const = 0;
  // What the entry promises of the launch with these arguments.
  virtual plumb_numerics declared(const device::OpEntry& entry, const DeviceTensors&, OpState*,
                                  device::Stream) const {
    return entry.numerics;
  }
  // Expectations of all outputs (and visible intermediates). `tensors` holds the inputs and the
  // outputs as the device stored them.
  virtual Expectations expect(const Step& step, const TensorSet& tensors,
                              const reference::Numerics& numerics,
                              const plumb_numerics& declared) const = 0;
  // Does every row have places of its own in every tensor with rows? Not where rows of their own
  // length are packed, nor where what is written depends on the number of rows.
  virtual bool rows_have_places() const { return true; }
  // A problem of rows picked from a larger one: their inputs and outputs, and scratch that has
  // their rows. `expect`, but for what follows a plan of the whole launch, which nobody picked.
  virtual Expectations expect_sample(const Step& step, const TensorSet& tensors,
                                     const reference::Numerics& numerics,
                                     const plumb_numerics& declared) const {
    return expect(step, tensors, numerics, declared);
  }
  // Expectations of tensors without rows of the launch (a tile plan). Used if only a sample of the
  // rows is judged.
  virtual Expectations expect_whole(const Step&, const TensorSet&, const reference::Numerics&,
                                    const plumb_numerics&) const {
    return {};
  }
  // Compares every expectation. Problems that judge a sample of rows, or compare with other ops,
  // override this. Adds the time to `seconds`.
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
  // Rows of `tensor` whose bits an op promises to repeat (replay against eager, run against run).
  virtual RowMask promised_rows(const Step&, const TensorSpec&) const { return {}; }
  // The same for an op of which the inputs say more than the step does (lengths that make a plan).
  virtual RowMask promised_rows_by_inputs(const Step& step, const TensorSet&,
                                          const TensorSpec& spec) const {
    return promised_rows(step, spec);
  }
  // The sequence of plain ops that this problem's op replaced, if OpDefinition::fused says so.
  virtual std::unique_ptr<Composition> composition() const;
  // A tensor in the form in which results are compared bit for bit, where the declaration leaves
  // something open between equally right ones (the order of selected indices). Nothing: as it is.
  virtual std::optional<HostTensor> canonical(const TensorSet&, const TensorSpec&,
                                              const plumb_numerics&) const {
    return std::nullopt;
  }
  // Columns of each row of an output that an op promises, by the inputs in `tensors`.
  virtual ColumnRanges promised_columns(const TensorSet&, const TensorSpec&) const { return {}; }
  // Simulated work of one launch, for the choice of how often a tier can afford it. Nanoseconds of
  // plain kernels on a quiet core, within a factor of 2: about one per scalar operation in a loop,
  // and for each simulated thread kShuffleCost or kBarrierCost per one that it meets. plumb bench
  // --only cost compares.
  virtual double cost() const = 0;
  // Nanoseconds of the reference for one verdict, beyond what every element costs the judge.
  virtual double reference_cost() const { return 0; }
  // Of one verdict, without visible intermediates. By default the bytes alone.
  virtual ReferenceWork reference_work() const;
  // Bytes that a launch at full capacity has to read and write. By default each input and output
  // once: more than that where an op reads or writes a part of a tensor.
  virtual double moved_bytes(const TensorSet& tensors) const;
  // How many times as long checked kernels take: more the more of the work is memory access.
  virtual double checked_factor() const { return 8; }
};

// The bytes of `tensors` that a reference reads and what it returns for those it writes.
double reference_bytes(const TensorSet& tensors);

inline constexpr double kShuffleCost = 40, kBarrierCost = 20;

// One op: cases/<op>.cpp defines `OpDefinition define_<op>()`.
struct OpDefinition : RowSchema {
  // Throws BadRow on an impossible combination.
  std::function<std::unique_ptr<Problem>(const Row&, const device::Properties&)> make_problem;
  // Has this row's Problem a composition()? Rows that have get cases of that scenario. Unset: none.
  std::function<bool(const Row&)> fused = {};
  // The parameter that counts rows which have nothing to do with each other, nor with their number.
  // A row of this op that is too large for the reference then is judged by a sample of them
  // (cases/drivers/tiled_problem.h). Empty: always as a whole.
  std::string_view row_count = {};
  // Of each of plumb's ops. Null for ops that tests make up.
  const OpTable* table = nullptr;
};

reference::Numerics to_reference(const plumb_numerics& declared);

}  // namespace plumb::cases
