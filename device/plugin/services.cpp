// SPDX-License-Identifier: Apache-2.0
#include "device/plugin/services.h"

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "device/plugin/hosted_device.h"
#include "device/plugin/told_text.h"

namespace plumb::device {

namespace {

std::mutex streams_mutex;
std::map<plumb_stream, HostedDevice*>& streams() {
  static std::map<plumb_stream, HostedDevice*> all;
  return all;
}

thread_local std::optional<DeviceError> service_error;
thread_local std::string explanation;

void keep(const DeviceError& error) {
  if (!service_error) service_error = error;
}

HostedDevice* find_device(plumb_stream stream) {
  const std::lock_guard lock(streams_mutex);
  const auto found = streams().find(stream);
  return found == streams().end() ? nullptr : found->second;
}

HostedDevice& device_of(const char* service, plumb_stream stream) {
  if (HostedDevice* device = find_device(stream)) return *device;
  throw DeviceError(ErrorKind::invalid_argument,
                    std::string(service) + ": not the stream of an op's parameters");
}

// Runs a service. If it throws, keeps the error and returns false.
template <typename Body>
bool serve(const char* service, plumb_stream stream, const Body& body) {
  try {
    body(device_of(service, stream));
    return true;
  } catch (const DeviceError& error) {
    keep(error);
  } catch (const std::exception& error) {
    keep({ErrorKind::other, std::string(service) + ": " + told(error.what())});
  }
  return false;
}

plumb_status launch(void*, const char* name, void (*function)(const void*), const void* arguments,
                    std::size_t bytes, plumb_stream stream) {
  const bool done = serve("launch", stream, [&](HostedDevice& device) {
    device.launch_frozen(name, function, arguments, bytes, stream);
  });
  return done ? PLUMB_OK : PLUMB_LAUNCH_FAILED;
}

void* allocate(void*, std::size_t bytes, plumb_stream stream) {
  void* memory = nullptr;
  serve("allocate", stream,
        [&](HostedDevice& device) { memory = device.allocate_scratch(bytes, stream); });
  return memory;
}

plumb_status release(void*, void* memory, plumb_stream stream) {
  const bool done = serve("release", stream,
                          [&](HostedDevice& device) { device.release_scratch(memory, stream); });
  return done ? PLUMB_OK : PLUMB_INVALID_ARGUMENT;
}

const plumb_device* describe_device(void*, plumb_stream stream) {
  const HostedDevice* device = find_device(stream);
  return device ? &device->description() : nullptr;
}

void explain(void*, const char* why) { explanation = told(why); }

}  // namespace

const plumb_host& plugin_services() {
  static const plumb_host table{PLUMB_ABI_VERSION, sizeof table, nullptr,          &launch,
                                &allocate,         &release,     &describe_device, &explain};
  return table;
}

void remember_stream(plumb_stream stream, HostedDevice& device) {
  const std::lock_guard lock(streams_mutex);
  streams()[stream] = &device;
}

void forget_stream(plumb_stream stream) {
  const std::lock_guard lock(streams_mutex);
  streams().erase(stream);
}

void forget_streams_of(const HostedDevice& device) {
  const std::lock_guard lock(streams_mutex);
  std::erase_if(streams(), [&](const auto& known) { return known.second == &device; });
}

void begin_plugin_call() {
  service_error.reset();
  explanation.clear();
}

void rethrow_service_error() {
  if (!service_error) return;
  const DeviceError error = *std::exchange(service_error, std::nullopt);
  throw error;
}

std::string take_explanation() { return std::exchange(explanation, {}); }

}  // namespace plumb::device
