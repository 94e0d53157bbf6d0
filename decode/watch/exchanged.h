// SPDX-License-Identifier: Apache-2.0
//
// Names the calls of a decode step that the reference replaces (exchange.h), and caches its outputs
// by inputs: the engines of a watch run the same calls.
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
  // Names of ops ("hc_head") and of single calls ("layer 1 attention").
  explicit Exchanged(std::set<std::string> names) : names_(std::move(names)) {}

  const std::set<std::string>& names() const { return names_; }
  bool covers(const device::decode::Call& call) const;
  // The entry whose numerics the call's outputs are judged by. If the implementation lacks a
  // replaced op: plumb's own entry.
  const device::OpEntry* entry_of(const device::decode::Call& call,
                                  const device::Implementation& ops) const;

  using Outputs = std::shared_ptr<const RightOutputs>;
  Outputs find(std::uint64_t inputs) const;  // nullptr: not seen yet
  void keep(std::uint64_t inputs, Outputs outputs) const;

 private:
  std::set<std::string> names_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::map<std::uint64_t, Outputs> seen_;
  mutable std::size_t bytes_ = 0;
};

}  // namespace plumb::cases
