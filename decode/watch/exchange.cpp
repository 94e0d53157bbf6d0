// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/exchange.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <utility>

namespace plumb::cases {

namespace {

using device::DeviceError;
using device::ErrorKind;
using device::decode::Call;

// For use in host functions of a simulated device, whose memory is host memory.
constexpr device::Stream kAtOnce = nullptr;

// Digest of the part of a call that does not depend on its inputs.
std::uint64_t digest(const JudgedCall& judged, std::uint64_t seed) {
  std::string text = judged.op;
  for (const auto& [name, value] : judged.row.integers) text += fmt::format(" {}={}", name, value);
  for (const auto& [name, word] : judged.row.words) text += fmt::format(" {}={}", name, word);
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::uint64_t digest(const JudgedCall& judged, const TensorSet& tensors) {
  std::uint64_t value = digest(judged, 0);
  for (const HostTensor& tensor : tensors.all()) {
    if (tensor.spec().role != Role::input) continue;
    value = XXH3_64bits_withSeed(tensor.bytes().data(), tensor.bytes().size(), value);
  }
  return value;
}

// Marks the tile plan of the call's state as made. True if it was made before: the op would have
// used it, and would not have made one.
bool keeps_plan(const Call& call) { return call.state != nullptr && call.state->mark_planned(); }

bool is_plan(const HostTensor& tensor) { return tensor.spec().role == Role::state; }

}  // namespace

bool Exchanged::covers(const Call& call) const {
  return names_.contains(std::string(call.op)) || names_.contains(call.place.name);
}

const device::OpEntry* Exchanged::entry_of(const Call& call,
                                           const device::Implementation& ops) const {
  const device::OpEntry* const entry = device::find_entry(ops, call.op);
  if (entry != nullptr || !covers(call)) return entry;
  return device::find_entry(device::builtin_implementation("sim-sm90"), call.op);
}

Exchanged::Outputs Exchanged::find(std::uint64_t inputs) const {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(inputs);
  return found == seen_.end() ? nullptr : found->second;
}

void Exchanged::keep(std::uint64_t inputs, Outputs outputs) const {
  constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  const std::lock_guard lock(mutex_);
  if (bytes_ > kMostBytes) {
    seen_.clear();
    bytes_ = 0;
  }
  for (const HostTensor& output : outputs->outputs.all()) bytes_ += 2 * output.bytes().size();
  seen_[inputs] = std::move(outputs);
}

Exchange::Exchange(device::Device& device, const device::decode::Geometry& geometry,
                   const device::Implementation& ops, std::shared_ptr<const Exchanged> which)
    : device_(device),
      geometry_(geometry),
      ops_(ops),
      which_(std::move(which)),
      properties_(device.properties()) {}

bool Exchange::takes(const Call& call) {
  if (!which_->covers(call)) return false;
  try {
    taken_ = One{this, judged_call(call, which_->entry_of(call, ops_), geometry_, properties_),
                 call.place.name};
  } catch (const BadRow&) {
    return false;
  }
  return true;
}

void Exchange::launch(const Call& call, device::Stream stream) {
  One one = std::move(*taken_);
  one.keeps_plan = keeps_plan(call);
  if (properties_.simulated) {
    calls_.push_back(std::move(one));
    const char* const plan = calls_.back().keeps_plan ? " with an earlier plan" : "";
    device_.launch_host(fmt::format("reference of {}{}", call.op, plan), &Exchange::run,
                        &calls_.back(), {}, stream);
    return;
  }
  if (device_.capturing()) {
    throw DeviceError(ErrorKind::capture_unsupported,
                      fmt::format("{}: {} cannot be replaced in a graph of {}, because a host "
                                  "function cannot read device memory; use mode eager",
                                  call.place.name, call.op, properties_.platform));
  }
  exchange(one, stream);
}

void Exchange::run(void* argument) {
  const One& one = *static_cast<const One*>(argument);
  try {
    one.exchange->exchange(one, kAtOnce);
  } catch (const DeviceError&) {
    throw;
  } catch (const std::exception& error) {
    throw DeviceError(ErrorKind::other, fmt::format("{}: {} cannot be replaced: {}", one.name,
                                                    one.judged.op, error.what()));
  }
}

void Exchange::exchange(const One& one, device::Stream stream) const {
  TensorSet tensors = one.judged.make_tensors();
  for (HostTensor& tensor : tensors.all()) {
    if (tensor.spec().role != Role::input) continue;
    read(*find_binding(one.judged.bindings, tensor.spec().name), tensor, stream);
  }
  const Exchanged::Outputs outputs = right(one, tensors);
  for (HostTensor& tensor : tensors.all()) {
    if (tensor.spec().role == Role::input || (one.keeps_plan && is_plan(tensor))) continue;
    write(*outputs, *find_binding(one.judged.bindings, tensor.spec().name), tensor, stream);
  }
}

// Outputs that fail their own judge are written nevertheless; the watch reports the call.
Exchanged::Outputs Exchange::right(const One& one, const TensorSet& tensors) const {
  const std::uint64_t key = digest(one.judged, tensors);
  // Placeholders have no row that holds their parameters, so their outputs are not cached.
  if (one.judged.problem) {
    if (Exchanged::Outputs seen = which_->find(key)) return seen;
  }
  const auto expect = [&](const TensorSet& all) { return one.judged.expect(all); };
  auto made = std::make_shared<const RightOutputs>(right_outputs(tensors, expect));
  if (one.judged.problem) which_->keep(key, made);
  return made;
}

void Exchange::read(const Binding& from, HostTensor& to, device::Stream stream) const {
  std::vector<std::byte> packed;
  const auto* bytes = static_cast<const std::byte*>(from.address);
  const std::size_t size = bytes_there(to, from);
  if (size == 0 || bytes == nullptr) return;
  if (stream != kAtOnce) {
    packed.resize(size);
    device_.copy(packed.data(), bytes, size, stream);
    bytes = packed.data();
  }
  if (from.row_bytes != 0) return unpack_rows(bytes, from.row_bytes, to);
  std::memcpy(to.bytes().data(), bytes, size);
}

void Exchange::write(const RightOutputs& right, const Binding& to, HostTensor& output,
                     device::Stream stream) const {
  auto* const address = static_cast<std::byte*>(const_cast<void*>(to.address));
  const std::size_t size = bytes_there(output, to);
  if (size == 0 || address == nullptr) return;
  read(to, output, stream);
  write_promised(right, output.spec().name, output.bytes());
  if (stream == kAtOnce) {
    if (to.row_bytes != 0) return pack_rows(output.bytes(), output, to.row_bytes, address);
    std::memcpy(address, output.bytes().data(), size);
    return;
  }
  std::vector<std::byte> packed(size);
  device_.copy(packed.data(), address, size, stream);
  if (to.row_bytes != 0) {
    pack_rows(output.bytes(), output, to.row_bytes, packed.data());
  } else {
    std::memcpy(packed.data(), output.bytes().data(), size);
  }
  device_.copy(address, packed.data(), size, stream);
}

}  // namespace plumb::cases
