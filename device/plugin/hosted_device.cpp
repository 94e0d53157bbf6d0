// SPDX-License-Identifier: Apache-2.0
#include "device/plugin/hosted_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "device/plugin/float_environment.h"
#include "device/plugin/services.h"
#include "device/plugin/told_text.h"

namespace plumb::device {

namespace {

constexpr std::size_t kMostScratch = std::size_t{1} << 44, kMostArguments = std::size_t{1} << 20;
}  // namespace

HostedDevice::HostedDevice(std::unique_ptr<Device> wrapped) : ForwardingDevice(std::move(wrapped)) {
  const Properties& properties = inner().properties();
  platform_ = properties.platform;
  description_ = {sizeof description_,
                  platform_.c_str(),
                  properties.simulated,
                  properties.wave_size,
                  properties.multiprocessors,
                  static_cast<std::int64_t>(properties.shared_bytes_per_block),
                  properties.fp8 == Fp8Dialect::e4m3fn ? PLUMB_E4M3FN : PLUMB_E4M3FNUZ};
}

HostedDevice::~HostedDevice() {
  forget_streams_of(*this);
  if (description_.simulated) return;  // pending work of a simulated device never runs
  try {
    inner().synchronize();
  } catch (const DeviceError&) {  // reported before, by the call that waited for the work
  }
}

Stream HostedDevice::create_stream() {
  const Stream stream = inner().create_stream();
  remember_stream(stream, *this);
  return stream;
}

void HostedDevice::destroy_stream(Stream stream) {
  forget_stream(stream);
  {
    const std::lock_guard lock(mutex_);
    scratch_.erase(stream);
  }
  inner().destroy_stream(stream);
}

void HostedDevice::begin_capture(Stream stream) {
  Scratch& scratch = scratch_of(stream);
  const CachingAllocator::Pool pool = scratch.allocator.create_pool();
  if (scratch.asked_for > 0) scratch.allocator.reserve(pool, scratch.asked_for);
  inner().begin_capture(stream);
  scratch.allocator.begin_pool(pool);
  scratch.reserved = scratch.asked_for;
  scratch.capturing = true;
}

Graph HostedDevice::end_capture(Stream stream) {
  Scratch& scratch = scratch_of(stream);
  if (scratch.capturing) scratch.allocator.end_pool();
  scratch.capturing = false;
  return inner().end_capture(stream);
}

void HostedDevice::synchronize(Stream stream) {
  inner().synchronize(stream);
  rethrow_late_error();
}

void HostedDevice::synchronize() {
  inner().synchronize();
  rethrow_late_error();
}

std::vector<GuardDamage> HostedDevice::check_guards() {
  std::vector<GuardDamage> damage = inner().check_guards();
  const std::lock_guard lock(mutex_);
  for (const auto& [stream, scratch] : scratch_) {
    for (GuardDamage& one : scratch->allocator.check_quarantine()) {
      damage.push_back(std::move(one));
    }
  }
  return damage;
}

std::string HostedDevice::take_launch_error() {
  const std::string said = take_explanation();
  return said.empty() ? inner().take_launch_error() : said;
}

void HostedDevice::launch_frozen(const char* name, void (*function)(const void*),
                                 const void* arguments, std::size_t bytes, Stream stream) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw DeviceError(ErrorKind::invalid_argument, fmt::format("launch: {}", what));
  };
  require(name != nullptr && *name != '\0', "no name");
  require(function != nullptr, "no function");
  require(arguments != nullptr || bytes == 0, "no arguments");
  require(bytes <= kMostArguments, "more than 1 MiB of arguments");
  FrozenCall* call = nullptr;
  {
    const std::lock_guard lock(mutex_);
    call = &calls_.emplace_back(FrozenCall{this, told(name), function, {}});
  }
  call->arguments.resize((bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  if (bytes > 0) std::memcpy(call->arguments.data(), arguments, bytes);
  inner().launch_host(call->name, &HostedDevice::run, call,
                      std::as_bytes(std::span(call->arguments)), stream);
}

void HostedDevice::run(void* argument) {
  const FrozenCall& call = *static_cast<const FrozenCall*>(argument);
  try {
    try {
      const KeptFloatEnvironment kept(fmt::format("host function '{}'", call.name));
      call.function(call.arguments.data());
    } catch (const DeviceError&) {
      throw;
    } catch (const std::exception& error) {
      throw DeviceError(ErrorKind::other,
                        fmt::format("host function '{}' threw: {}", call.name, told(error.what())));
    } catch (...) {
      throw DeviceError(ErrorKind::other, fmt::format("host function '{}' threw", call.name));
    }
    rethrow_service_error();
  } catch (const DeviceError& error) {
    if (call.device->description_.simulated) throw;
    const std::lock_guard lock(call.device->mutex_);
    if (call.device->late_error_.empty()) call.device->late_error_ = error.what();
  }
}

void HostedDevice::rethrow_late_error() {
  const std::lock_guard lock(mutex_);
  if (!late_error_.empty()) throw DeviceError(ErrorKind::other, std::exchange(late_error_, {}));
}

HostedDevice::Scratch& HostedDevice::scratch_of(Stream stream) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Scratch>& scratch = scratch_[stream];
  if (!scratch) scratch = std::make_unique<Scratch>(inner(), stream);
  return *scratch;
}

void* HostedDevice::allocate_scratch(std::size_t bytes, Stream stream) {
  if (bytes > kMostScratch) {
    throw DeviceError(ErrorKind::out_of_memory, fmt::format("allocate {} bytes", bytes));
  }
  Scratch& scratch = scratch_of(stream);
  if (!scratch.capturing) {
    scratch.asked_for += granules(bytes);
  } else if (granules(bytes) > scratch.reserved) {
    throw DeviceError(ErrorKind::capture_unsupported,
                      fmt::format("allocate {} bytes in a capture, in which {} are left of what "
                                  "was asked for before it",
                                  bytes, scratch.reserved));
  } else {
    scratch.reserved -= granules(bytes);
  }
  return scratch.allocator.allocate(bytes, "scratch");
}

void HostedDevice::release_scratch(void* memory, Stream stream) {
  scratch_of(stream).allocator.free(memory);
}

}  // namespace plumb::device
