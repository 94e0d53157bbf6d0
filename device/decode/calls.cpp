// SPDX-License-Identifier: Apache-2.0
#include "device/decode/calls.h"

#include "device/decode/stand_ins.h"

namespace plumb::device::decode {

namespace {

bool is_stand_in(std::string_view op) {
#define PLUMB_IS_STAND_IN(name) \
  if (op == #name) return true;
  PLUMB_FOR_EACH_STAND_IN(PLUMB_IS_STAND_IN)
#undef PLUMB_IS_STAND_IN
  return false;
}

}  // namespace

const plumb_op_entry* Caller::find(std::string_view op) const {
  if (is_stand_in(op)) return find_entry(own_, op);
  const plumb_op_entry* const entry = find_entry(ops_, op);
  return entry != nullptr ? entry : missing_.instead(op, own_);
}

void Caller::launch(const Call& call) const {
  const plumb_op_entry* const entry = find(call.op);
  const std::string op(call.op);
  if (entry == nullptr) throw MissingOp(op, call.name + ": " + ops_.name + " has no " + op);
  if (observer_ != nullptr) observer_->before(call, stream_);
  if (entry->launch(call.params) != PLUMB_OK) {
    throw MissingOp(op, call.name + ": " + ops_.name + " refuses this call of " + op);
  }
  ++calls_;
  if (observer_ != nullptr) observer_->after(call, stream_);
}

}  // namespace plumb::device::decode
