// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/calls.h"

#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

namespace {

bool is_placeholder(std::string_view op) {
#define PLUMB_IS_PLACEHOLDER(name) \
  if (op == #name) return true;
  PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_IS_PLACEHOLDER)
#undef PLUMB_IS_PLACEHOLDER
  return false;
}

plumb_status enqueue(const device::OpEntry& entry, const Call& call) {
  if (call.state == nullptr) return entry.launch(call.params);
  *call.own = call.state->own(entry, call.params);
  return call.state->launch(entry, call.params);
}

}  // namespace

CallPlace layer_place(std::size_t layer, std::string_view what) {
  CallPlace place("layer " + std::to_string(layer) + " " + std::string(what));
  place.layer = static_cast<int>(layer);
  return place;
}

const device::OpEntry* Caller::find(std::string_view op) const {
  if (const device::OpEntry* const entry = find_entry(ops_, op)) return entry;
  return is_placeholder(op) ? find_entry(own_, op) : missing_.instead(op, own_);
}

const device::OpEntry& Caller::require(const Call& call) const {
  if (const device::OpEntry* const entry = find(call.op)) return *entry;
  throw RefusedCall(call.op,
                    call.place.name + ": " + ops_.name + " has no " + std::string(call.op));
}

bool Caller::chooses(std::string_view op, std::string_view choice) const {
  const device::OpEntry* const entry = find(op);
  return entry != nullptr && entry->chooses(choice);
}

void Caller::launch(const Call& call) const {
  const bool exchanged = exchange_ != nullptr && exchange_->takes(call);
  const device::OpEntry* const entry = exchanged ? nullptr : &require(call);
  if (observer_ != nullptr) observer_->before(call, stream_);
  if (exchanged) {
    exchange_->launch(call, stream_);
  } else if (enqueue(*entry, call) != PLUMB_OK) {
    throw RefusedCall(call.op, call.place.name + ": " + ops_.name + " refuses this call of " +
                                   std::string(call.op));
  }
  ++calls_;
  if (observer_ != nullptr) observer_->after(call, stream_);
}

}  // namespace plumb::device::decode
