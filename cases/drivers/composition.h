// SPDX-License-Identifier: Apache-2.0
//
// The scenario "composition": a fused op beside the plain ops that it replaced, on the same device
// and the same inputs. Where both round at the same places and declare the same arithmetic, their
// results have to be the same bits; otherwise each is judged within its own bounds.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::cases {

// Entry of an op by name; nullptr if the implementation lacks it.

// The plain sequence of one fused problem: Problem::composition(). What it writes it calls
// "plain_<name>", after the output of the fused op that it stands against.
class Composition {
 public:
  virtual ~Composition() = default;
  // The ops that it calls, in order. An implementation that lacks one is skipped.
  virtual std::vector<std::string_view> ops() const = 0;
  // What it needs beside the fused op's tensors: outputs and scratch, and inputs for steps that are
  // no op (a selection, a sum).
  virtual TensorSet make_tensors() const = 0;
  // Writes those inputs from the fused op's, which are filled.
  virtual void fill(const Step&, TensorSet&) const {}
  // Enqueues the sequence; entries in the order of ops().
  virtual plumb_status launch(const std::vector<device::OpEntry>& entries,
                              const DeviceTensors& tensors, device::Stream stream) const = 0;
  // Does this output of the fused op come from the same roundings?
  virtual bool rounds_alike(std::string_view) const { return true; }
  // What is right of what the sequence wrote where it does not.
  virtual Expectations expect(const Step&, const TensorSet&,
                              const std::vector<device::OpEntry>&) const {
    return {};
  }
};

// The problem of both, to be driven like any other: launches the fused op, then the sequence.
// `op`: the fused one, by whose contract plain ones have its bits or not. Throws Unsupported where
// the implementation lacks a plain op.
std::unique_ptr<Problem> compose(std::unique_ptr<Problem> fused, std::string_view op,
                                 const device::Implementation& implementation);

}  // namespace plumb::cases
