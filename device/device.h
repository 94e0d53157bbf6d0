// SPDX-License-Identifier: Apache-2.0
//
// What the host sees of a device: memory, streams, events, copies, graphs. One implementation per
// back end (sim, cuda, hip). Every call that fails throws DeviceError, whose message names the call
// and what was wrong. Handles are opaque pointers, so that they pass through the C ABI unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "device/op_entry.h"

namespace plumb::device {

// Names of what can go wrong, stable: tests and reports match on them.
enum class ErrorKind {
  invalid_argument,
  out_of_memory,
  launch_limits,  // block, grid or shared memory beyond what the platform allows
  out_of_bounds,  // access outside every live allocation
  use_after_free,
  uninitialized_read,
  race,
  divergent_barrier,  // lanes or threads meet at different source lines
  exited_lane,        // a wave operation names a lane that has returned
  deadlock,
  capture_unsupported,  // something that a capture may not contain
  capture_invalid,      // ended or replayed in a wrong state
  held_by_graph,        // memory given back that a graph would still use
  guard_damaged,
  timeout,
  unsupported,  // said by the work itself: legal, but the implementation does not do it
  other
};
std::string_view name_of(ErrorKind kind);

class DeviceError : public std::runtime_error {
 public:
  DeviceError(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

enum class Fp8Dialect { e4m3fn, e4m3fnuz };

struct Properties {
  std::string platform;  // "sim-sm90", "cuda-sm90", ...
  std::string name;      // of the product; "" where it is simulated
  std::string runtime;   // versions of the vendor's runtime and driver; "" where it is simulated
  bool simulated = false;
  int wave_size = 32;
  int multiprocessors = 1;
  int max_threads_per_block = 1024;
  std::size_t shared_bytes_per_block = 48 << 10;
  std::size_t memory_bytes = 0;  // 0: the host's
  std::int64_t max_grid_x = 2147483647, max_grid_y = 65535;
  Fp8Dialect fp8 =
      Fp8Dialect::e4m3fn;  // dialect of caches that native encoders of the platform write
};

// What a simulated device does to the code under test, beside running it. Real devices ignore it.
enum class Order { forward, reverse, random };  // in which threads of a block, and blocks, run
// late: nothing executes before something waits for it. interleaved: the same, and then everything
// that is pending on any stream executes, a block of one kernel beside blocks of others.
enum class Policy { early, late, interleaved };
struct Conditions {
  Order order = Order::forward;
  std::uint64_t seed = 0;
  Policy policy = Policy::early;
  bool checked = false;      // kernels built with memory, race and initialisation checking
  bool page_guards = false;  // allocations end at an unmapped page, and are 16-byte aligned
  // Barrier sites ("mhc_pre.cu:120") that do nothing: to prove that each is needed.
  std::vector<std::string> disabled_barriers;
};

using Stream = void*;
using Event = void*;
using Graph = void*;
using GraphExec = void*;

struct GraphNode {
  std::string kind;  // "kernel", "copy", "fill", "host"
  std::string name;  // kernel name, else empty
};

// A guard zone that somebody wrote into.
struct GuardDamage {
  std::string label;        // of the allocation
  std::int64_t offset = 0;  // in bytes from the start of the allocation; negative: in front of it
  std::uint8_t expected = 0, got = 0;
  std::int64_t bytes = 0;  // how many guard bytes differ
};

inline constexpr std::size_t kLargestSparse = std::size_t{64} << 30;  // bytes

// For any number of host threads at once. A capture belongs to the thread that began it: it neither
// hinders others nor takes part in what they do.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Properties& properties() const = 0;

  // Plain allocation, 256-byte aligned, poisoned, between guard zones. Refused during capture.
  virtual void* allocate(std::size_t bytes, std::string_view label) = 0;
  // Reserves address space only, kLargestSparse at most; pages appear when touched and read as
  // zero. No poison.
  virtual void* allocate_sparse(std::size_t bytes, std::string_view label) = 0;
  // Pending work that uses the memory has to be over: free may, but need not, wait for it.
  virtual void free(void* memory) = 0;
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(void* memory) = 0;
  // Damage since the last call, repaired. Does not wait: pending work has done none yet.
  virtual std::vector<GuardDamage> check_guards() = 0;

  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) = 0;
  virtual Event create_event() = 0;
  virtual void destroy_event(Event event) = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  virtual void synchronize_event(Event event) = 0;
  // Events that know when they happened; the others need not. Refused where there is no clock of
  // the device's own: a simulated platform's times would be measurements of nothing.
  virtual Event create_timing_event();
  virtual double elapsed_seconds(Event from, Event to);  // both have happened
  virtual void synchronize(Stream stream) = 0;
  virtual void synchronize() = 0;

  // Any direction. From pageable memory: read at the call. From pinned memory: read when it runs.
  // To pageable memory: complete on return. During capture: recorded, read at replay; refused where
  // it would have to be complete on return.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) = 0;
  virtual void call_host(void (*function)(void*), void* argument, Stream stream) = 0;
  // The same for a function that stands for a kernel: nodes() calls it one, by `name`, where the
  // back end can keep that. `words`: where it keeps addresses that it will use.
  virtual void launch_host(std::string_view /*name*/, void (*function)(void*), void* argument,
                           std::span<const std::byte> /*words*/, Stream stream) {
    call_host(function, argument, stream);
  }

  // What the runtime said of the last launch that this thread could not do; "" if it said nothing.
  // Reading clears it.
  virtual std::string take_launch_error() { return {}; }

  virtual void begin_capture(Stream stream) = 0;
  // Whether a capture that the calling thread began is in progress: what plain allocation refuses.
  virtual bool capturing() = 0;
  virtual Graph end_capture(Stream stream) = 0;
  virtual std::vector<GraphNode> nodes(Graph graph) = 0;
  virtual GraphExec instantiate(Graph graph) = 0;
  virtual void replay(GraphExec graph, Stream stream) = 0;
  virtual void destroy_graph(Graph graph) = 0;
  virtual void destroy_graph_exec(GraphExec graph) = 0;
  // Memory goes back to an allocator on top of the device, as with free(). If a graph that can
  // still be replayed has an address in it, a simulated device throws held_by_graph out of the next
  // call that needs the device: destructors give memory back.
  virtual void note_given_back(const void* /*begin*/, std::size_t /*bytes*/,
                               std::string_view /*label*/) {}
};

// Platforms this build can open, and why not where it cannot. Throws on an unknown name.
std::vector<std::string> known_platforms();
std::string why_unavailable(std::string_view platform);  // empty: available
std::unique_ptr<Device> open_device(std::string_view platform, const Conditions& conditions = {});

// What keeps one unit of a device busy, to measure its rate (plumb bench). Each enqueues one launch
// and says how much work that is: bytes read and written, or operations, two per multiply-add.
struct RateWork {
  plumb_status status = PLUMB_OK;
  double amount = 0;
};
struct RateKernels {
  // Both 16-byte aligned, `bytes` a multiple of 16.
  RateWork (*copy)(void* to, const void* from, std::int64_t bytes, Stream stream);
  // fp32 multiply-adds and bf16 matrix products with fp32 sums, all in registers and shared memory.
  // `out`: where one number per thread goes, for kRateThreads of them.
  RateWork (*multiply_add)(float* out, Stream stream);
  RateWork (*multiply_matrices)(float* out, Stream stream);
};
inline constexpr std::int64_t kRateThreads = 1 << 20;
// nullptr where there are none: on simulated platforms.
const RateKernels* rate_kernels(std::string_view platform);

// nullptr for an op that the implementation lacks.
const OpEntry* find_entry(const Implementation& implementation, std::string_view op);

// plumb's own kernels for a platform, and the same compiled with checking (simulator only). The
// first have, beside the ops, an entry for what stands beside ops (device/background_load).
const Implementation& builtin_implementation(std::string_view platform);
const Implementation& checked_implementation(std::string_view platform);

}  // namespace plumb::device
