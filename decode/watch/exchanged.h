// SPDX-License-Identifier: Apache-2.0
//
// Which calls of a decode step the reference stands in for (exchange.h), and what it made of inputs
// that it has seen: the engines of a watch give it the same ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "cases/judge/right_outputs.h"
#include "decode/engine/calls.h"

namespace plumb::cases {

class Exchanged {
 public:
  // Ops ("hc_head"), and single calls by their names ("layer 1 attention").
  explicit Exchanged(std::set<std::string> names) : names_(std::move(names)) {}

  const std::set<std::string>& names() const { return names_; }
  bool covers(const device::decode::Call& call) const;
  // What the call's outputs are judged by: plumb's own promise, where the implementation lacks an
  // op that is exchanged.
  const device::OpEntry* entry_of(const device::decode::Call& call,
                                  const device::Implementation& ops) const;

  using Outputs = std::shared_ptr<const RightOutputs>;
  Outputs find(std::uint64_t inputs) const;  // nullptr: not seen yet
  void keep(std::uint64_t inputs, Outputs outputs) const;

 private:
  std::set<std::string> names_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::map<std::uint64_t, Outputs> seen_;
  mutable std::size_t bytes_ = 0;
};

}  // namespace plumb::cases
