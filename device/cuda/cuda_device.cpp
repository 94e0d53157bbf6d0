// SPDX-License-Identifier: Apache-2.0
//
// Memory, streams and events. Graphs are in cuda_graphs.cpp.
#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <string_view>

#include "device/cuda/cuda_error.h"
#include "device/cuda/launch.h"
#include "device/cuda/open.h"

namespace plumb::device::cuda {

namespace {

constexpr std::size_t kFrontGuard = 512;  // keeps allocations 256-byte aligned
constexpr std::size_t kRearGuard = 1024;
constexpr int kPoison = 0xf7;  // NaN in halves, floats and doubles; negative in integers

thread_local std::string launch_error;

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t native_event(Event event) { return static_cast<cudaEvent_t>(event); }

Properties query() {
  int device = 0;
  cudaDeviceProp found{};
  PLUMB_CUDA(cudaGetDevice, &device);
  PLUMB_CUDA(cudaGetDeviceProperties, &found, device);
  Properties result;
  result.platform = "cuda-sm" + std::to_string(found.major) + std::to_string(found.minor);
  result.wave_size = found.warpSize;
  result.multiprocessors = found.multiProcessorCount;
  result.max_threads_per_block = found.maxThreadsPerBlock;
  result.shared_bytes_per_block = found.sharedMemPerBlockOptin;
  result.max_grid_x = found.maxGridSize[0];
  result.max_grid_y = found.maxGridSize[1];
  return result;
}

void forget(auto& list, auto value) { std::erase(list, value); }

}  // namespace

const Properties& properties() {
  static const Properties found = query();
  return found;
}

const Properties& stream_properties(plumb_stream) { return properties(); }

std::string why_unavailable(const std::string& platform) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return describe(error, "cudaGetDeviceCount");
  }
  if (count == 0) return "no CUDA device";
  if (properties().platform == platform) return "";
  return "the device here is " + properties().platform;
}

std::string take_launch_error() { return std::exchange(launch_error, {}); }

plumb_status launch_raw(const void* kernel, const LaunchShape& shape, plumb_stream stream,
                        void** arguments) {
  constexpr std::size_t kWithoutAsking = 48 << 10;
  const auto failed = [](cudaError_t error, const char* call) {
    cudaGetLastError();
    launch_error = describe(error, call);
    return PLUMB_LAUNCH_FAILED;
  };
  if (shape.dynamic_shared_bytes > kWithoutAsking) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shape.dynamic_shared_bytes));
    if (error != cudaSuccess) return failed(error, "cudaFuncSetAttribute");
  }
  const dim3 grid(static_cast<unsigned>(shape.grid_x), static_cast<unsigned>(shape.grid_y));
  const cudaError_t error =
      cudaLaunchKernel(kernel, grid, dim3(static_cast<unsigned>(shape.block)), arguments,
                       shape.dynamic_shared_bytes, static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? PLUMB_OK : failed(error, "cudaLaunchKernel");
}

std::unique_ptr<Device> open() { return std::make_unique<CudaDevice>(); }

CudaDevice::CudaDevice() { PLUMB_CUDA(cudaStreamCreateWithFlags, &own_, cudaStreamNonBlocking); }

// Errors here have no one to go to: what failed before has been reported.
CudaDevice::~CudaDevice() {
  for (const cudaStream_t stream : capturing_) {  // left by an exception
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) cudaGraphDestroy(graph);
  }
  for (const cudaStream_t stream : streams_) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  for (void* memory : pinned_) cudaFreeHost(memory);
  for (const auto& [address, allocation] : allocations_) cudaFree(allocation.base);
  cudaStreamDestroy(own_);
  cudaGetLastError();
}

void* CudaDevice::allocate(std::size_t bytes, std::string_view label) {
  if (capturing()) {
    throw DeviceError(Fault::capture_unsupported,
                      "allocate " + std::string(label) + ": not allowed during capture");
  }
  Allocation allocation{nullptr, bytes, std::string(label), true};
  void* memory = nullptr;
  PLUMB_CUDA(cudaMalloc, &memory, kFrontGuard + bytes + kRearGuard);
  allocation.base = static_cast<std::uint8_t*>(memory);
  std::uint8_t* const address = allocation.base + kFrontGuard;
  PLUMB_CUDA(cudaMemsetAsync, allocation.base, kGuardByte, kFrontGuard, own_);
  if (bytes > 0) PLUMB_CUDA(cudaMemsetAsync, address, kPoison, bytes, own_);
  PLUMB_CUDA(cudaMemsetAsync, address + bytes, kGuardByte, kRearGuard, own_);
  PLUMB_CUDA(cudaStreamSynchronize, own_);
  allocations_.emplace(address, std::move(allocation));
  return address;
}

// All of it is backed: cards that run these cases have the memory, and zeros are what pages that
// appear when touched would hold.
void* CudaDevice::allocate_sparse(std::size_t bytes, std::string_view label) {
  void* memory = nullptr;
  PLUMB_CUDA(cudaMalloc, &memory, bytes);
  PLUMB_CUDA(cudaMemsetAsync, memory, 0, bytes, own_);
  PLUMB_CUDA(cudaStreamSynchronize, own_);
  auto* const address = static_cast<std::uint8_t*>(memory);
  allocations_.emplace(address, Allocation{address, bytes, std::string(label), false});
  return memory;
}

void CudaDevice::free(void* memory) {
  const auto found = allocations_.find(static_cast<std::uint8_t*>(memory));
  if (found == allocations_.end()) {
    throw DeviceError(Fault::invalid_argument, "free: no allocation starts at this address");
  }
  PLUMB_CUDA(cudaFree, found->second.base);
  allocations_.erase(found);
}

void* CudaDevice::allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  PLUMB_CUDA(cudaMallocHost, &memory, bytes);
  pinned_.push_back(memory);
  return memory;
}

void CudaDevice::free_pinned(void* memory) {
  PLUMB_CUDA(cudaFreeHost, memory);
  forget(pinned_, memory);
}

std::vector<GuardZone> CudaDevice::zones() const {
  std::vector<GuardZone> all;
  for (const auto& [address, allocation] : allocations_) {
    if (!allocation.guarded) continue;
    all.push_back({allocation.base, kFrontGuard});
    all.push_back({address + allocation.bytes, kRearGuard});
  }
  return all;
}

GuardDamage CudaDevice::describe_damage(const Allocation& allocation, const GuardZone& zone) const {
  std::vector<std::uint8_t> bytes(zone.bytes);
  PLUMB_CUDA(cudaMemcpyAsync, bytes.data(), zone.begin, zone.bytes, cudaMemcpyDeviceToHost, own_);
  PLUMB_CUDA(cudaMemsetAsync, zone.begin, kGuardByte, zone.bytes, own_);
  PLUMB_CUDA(cudaStreamSynchronize, own_);
  const auto is_damaged = [](std::uint8_t byte) { return byte != kGuardByte; };
  const auto first = std::find_if(bytes.begin(), bytes.end(), is_damaged);
  GuardDamage damage;
  damage.label = allocation.label;
  damage.offset = zone.begin + (first - bytes.begin()) - (allocation.base + kFrontGuard);
  damage.expected = kGuardByte;
  damage.got = *first;
  damage.bytes = std::count_if(bytes.begin(), bytes.end(), is_damaged);
  return damage;
}

std::vector<GuardDamage> CudaDevice::check_guards() {
  const std::vector<GuardZone> all = zones();
  if (all.empty()) return {};
  const std::size_t zone_bytes = all.size() * sizeof(GuardZone);
  const std::size_t count_bytes = all.size() * sizeof(std::uint32_t);
  void* scratch = nullptr;
  PLUMB_CUDA(cudaMallocAsync, &scratch, zone_bytes + count_bytes, own_);
  auto* const device_zones = static_cast<GuardZone*>(scratch);
  auto* const device_counts = reinterpret_cast<std::uint32_t*>(device_zones + all.size());
  std::vector<std::uint32_t> damaged(all.size());
  PLUMB_CUDA(cudaMemcpyAsync, device_zones, all.data(), zone_bytes, cudaMemcpyHostToDevice, own_);
  PLUMB_CUDA(count_damage, device_zones, static_cast<int>(all.size()), device_counts, own_);
  PLUMB_CUDA(cudaMemcpyAsync, damaged.data(), device_counts, count_bytes, cudaMemcpyDeviceToHost,
             own_);
  PLUMB_CUDA(cudaFreeAsync, scratch, own_);
  PLUMB_CUDA(cudaStreamSynchronize, own_);
  std::vector<GuardDamage> found;
  std::size_t zone = 0;
  for (const auto& [address, allocation] : allocations_) {
    if (!allocation.guarded) continue;
    for (int side = 0; side < 2; ++side, ++zone) {
      if (damaged[zone] != 0) found.push_back(describe_damage(allocation, all[zone]));
    }
  }
  return found;
}

Stream CudaDevice::create_stream() {
  cudaStream_t stream = nullptr;
  PLUMB_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  streams_.push_back(stream);
  return stream;
}

void CudaDevice::destroy_stream(Stream stream) {
  PLUMB_CUDA(cudaStreamDestroy, native(stream));
  forget(streams_, native(stream));
}

Event CudaDevice::create_event() {
  cudaEvent_t event = nullptr;
  PLUMB_CUDA(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
  events_.push_back(event);
  return event;
}

Event CudaDevice::create_timing_event() {
  cudaEvent_t event = nullptr;
  PLUMB_CUDA(cudaEventCreate, &event);
  events_.push_back(event);
  return event;
}

double CudaDevice::elapsed_seconds(Event from, Event to) {
  float milliseconds = 0;
  PLUMB_CUDA(cudaEventElapsedTime, &milliseconds, native_event(from), native_event(to));
  return 1e-3 * static_cast<double>(milliseconds);
}

void CudaDevice::destroy_event(Event event) {
  PLUMB_CUDA(cudaEventDestroy, native_event(event));
  forget(events_, native_event(event));
}

void CudaDevice::record(Event event, Stream stream) {
  PLUMB_CUDA(cudaEventRecord, native_event(event), native(stream));
}

void CudaDevice::wait(Stream stream, Event event) {
  PLUMB_CUDA(cudaStreamWaitEvent, native(stream), native_event(event), 0);
}

void CudaDevice::synchronize_event(Event event) {
  PLUMB_CUDA(cudaEventSynchronize, native_event(event));
}

void CudaDevice::synchronize(Stream stream) { PLUMB_CUDA(cudaStreamSynchronize, native(stream)); }

void CudaDevice::synchronize() { PLUMB_CUDA(cudaDeviceSynchronize); }

void CudaDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  PLUMB_CUDA(cudaMemcpyAsync, to, from, bytes, cudaMemcpyDefault, native(stream));
}

void CudaDevice::fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  PLUMB_CUDA(cudaMemsetAsync, to, value, bytes, native(stream));
}

void CudaDevice::call_host(void (*function)(void*), void* argument, Stream stream) {
  PLUMB_CUDA(cudaLaunchHostFunc, native(stream), function, argument);
}

}  // namespace plumb::device::cuda
