// SPDX-License-Identifier: Apache-2.0
#include "device/decode/calls.h"

namespace plumb::device::decode {

void Caller::launch(const Call& call) const {
  const plumb_op_entry* entry = find_entry(ops_, call.op);
  if (entry == nullptr) entry = find_entry(stand_ins_, call.op);
  const std::string op(call.op);
  if (entry == nullptr) throw MissingOp(call.name + ": " + ops_.name + " has no " + op);
  if (observer_ != nullptr) observer_->before(call, stream_);
  if (entry->launch(call.params) != PLUMB_OK) {
    throw MissingOp(call.name + ": " + ops_.name + " refuses this call of " + op);
  }
  ++calls_;
  if (observer_ != nullptr) observer_->after(call, stream_);
}

}  // namespace plumb::device::decode
