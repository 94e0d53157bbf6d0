// SPDX-License-Identifier: Apache-2.0
//
// The scenario "composition": runs a fused op and the sequence of plain ops that it replaced, on
// one device and the same inputs. If plumb's own kernels round at the same places and declare the
// same arithmetic, their results must be bit-equal. Otherwise each result is judged within its own
// bounds: two kernels that declare equal numerics may still add in another order.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::cases {

// The sequence of plain ops for one fused problem (Problem::composition()). The sequence writes its
// results to tensors "plain_<name>", where <name> is the fused op's output to compare with.
class Composition {
 public:
  virtual ~Composition() = default;
  // The ops of the sequence, in order. The case is skipped if the implementation lacks one of them.
  virtual std::vector<std::string_view> ops() const = 0;
  // Additional tensors that the fused op does not have: outputs and scratch of the sequence, and
  // inputs for steps that no op computes (a selection, a sum).
  virtual TensorSet make_tensors() const = 0;
  // Computes these additional inputs from the fused op's inputs, which are already filled.
  virtual void fill(const Step&, TensorSet&) const {}
  // Enqueues the sequence. `entries` are in the order of ops().
  virtual plumb_status launch(const std::vector<device::OpEntry>& entries,
                              const DeviceTensors& tensors, device::Stream stream) const = 0;
  // True if the plain sequence rounds at the same places as the fused op for this output.
  virtual bool rounds_alike(std::string_view) const { return true; }
  // Expectations for results of the sequence that are rounded differently from the fused op's.
  virtual Expectations expect(const Step&, const TensorSet&,
                              const std::vector<device::OpEntry>&) const {
    return {};
  }
};

// A problem that launches the fused op and then the sequence, driven like any other problem. The
// results need not have the same bits if the kernels are `foreign` (a plug-in's), or if an op of
// the sequence declares another value of a choice than `op` (the fused op) does. Throws Unsupported
// if the implementation lacks a plain op.
std::unique_ptr<Problem> compose(std::unique_ptr<Problem> fused, std::string_view op,
                                 const device::Implementation& implementation, bool foreign);

}  // namespace plumb::cases
