// SPDX-License-Identifier: Apache-2.0
//
// The host's view of a device: memory, streams, events, copies, graphs. One implementation per back
// end (sim, cuda, hip). Every call that fails throws DeviceError, whose message names the call and
// the cause. Handles are opaque pointers because they pass through the C ABI unchanged.
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

// Kinds of errors. Their names are stable because tests and reports compare them.
enum class ErrorKind {
  invalid_argument,
  out_of_memory,
  launch_limits,  // block, grid or shared memory beyond what the platform allows
  out_of_bounds,  // access outside every live allocation
  use_after_free,
  uninitialized_read,
  race,
  divergent_barrier,  // lanes or threads wait at barriers in different source lines
  exited_lane,        // a wave operation names a lane that has returned
  deadlock,
  capture_unsupported,  // an operation that a capture may not contain
  capture_invalid,      // a capture or graph that is ended or replayed in a wrong state
  held_by_graph,        // memory is freed while a graph that can be replayed holds its address
  guard_damaged,
  timeout,
  unsupported,  // legal, but not supported by the implementation
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
  std::string name;      // product name of the card; "" on simulated platforms
  std::string runtime;   // versions of the vendor's runtime and driver; "" on simulated platforms
  bool simulated = false;
  int wave_size = 32;
  int multiprocessors = 1;
  int max_threads_per_block = 1024;
  std::size_t shared_bytes_per_block = 48 << 10;
  std::size_t memory_bytes = 0;  // 0: as much as the host has
  std::int64_t max_grid_x = 2147483647, max_grid_y = 65535;
  Fp8Dialect fp8 =
      Fp8Dialect::e4m3fn;  // FP8 format that the platform's own encoders write into caches
};

// Conditions under which a simulated device runs the code under test. Real devices ignore them.
enum class Order { forward, reverse, random };  // order of blocks, and of threads in a block
// When enqueued work runs. early: at once. late: only when the host waits for it, or for work that
// depends on it. interleaved: as late, but then everything pending on all streams runs, with blocks
// of different kernels in turn.
enum class Policy { early, late, interleaved };
struct Conditions {
  Order order = Order::forward;
  std::uint64_t seed = 0;
  Policy policy = Policy::early;
  bool checked = false;      // kernels compiled with memory, race and initialisation checks
  bool page_guards = false;  // allocations end at an unmapped page, and are 16-byte aligned
  // Barriers that are skipped, by site ("mhc_pre.cu:120"). Tests prove with them that each is
  // needed.
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

// A guard zone with overwritten bytes.
struct GuardDamage {
  std::string label;        // label of the allocation
  std::int64_t offset = 0;  // in bytes from the start of the allocation; negative: in front of it
  std::uint8_t expected = 0, got = 0;
  std::int64_t bytes = 0;  // how many guard bytes differ
};

// Most bytes of one allocate_sparse().
inline constexpr std::size_t kLargestSparse = std::size_t{64} << 30;

// Any number of host threads may call a device at once. A capture belongs to the thread that began
// it: other threads can neither break it nor add nodes to it.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Properties& properties() const = 0;

  // Plain allocation, 256-byte aligned (16-byte with page guards), poisoned, between guard zones.
  // Refused during capture.
  virtual void* allocate(std::size_t bytes, std::string_view label) = 0;
  // Reserves address space only, at most kLargestSparse bytes. Pages are backed when touched, and
  // read as zero. Not poisoned.
  virtual void* allocate_sparse(std::size_t bytes, std::string_view label) = 0;
  // The caller ensures that no pending work uses the memory: free() may wait for it, but need not.
  virtual void free(void* memory) = 0;
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(void* memory) = 0;
  // Guard zones that were damaged since the last call; repairs them. Does not wait for pending
  // work, whose damage only a later call can report.
  virtual std::vector<GuardDamage> check_guards() = 0;

  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) = 0;
  virtual Event create_event() = 0;
  virtual void destroy_event(Event event) = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  virtual void synchronize_event(Event event) = 0;
  // Events that record their time; those of create_event need not. Throws on simulated platforms:
  // their times would not be measurements of anything.
  virtual Event create_timing_event();
  virtual double elapsed_seconds(Event from, Event to);  // both events have happened
  virtual void synchronize(Stream stream) = 0;
  virtual void synchronize() = 0;

  // Copies in any direction. Pageable source: read during the call. Pinned source: read when the
  // copy runs. Pageable destination: complete on return. During capture the copy becomes a node
  // that reads at replay; a copy to pageable memory is then refused because it would have to wait.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) = 0;
  virtual void call_host(void (*function)(void*), void* argument, Stream stream) = 0;
  // Like call_host, for a function that stands for a kernel: nodes() lists it as a kernel of this
  // name if the back end can store that. `words`: memory with the addresses that the function will
  // use.
  virtual void launch_host(std::string_view /*name*/, void (*function)(void*), void* argument,
                           std::span<const std::byte> /*words*/, Stream stream) {
    call_host(function, argument, stream);
  }

  // The runtime's error text for this thread's last failed launch, "" if there is none. Reading it
  // clears it.
  virtual std::string take_launch_error() { return {}; }

  virtual void begin_capture(Stream stream) = 0;
  // Whether a capture that the calling thread began is in progress. Plain allocation then throws.
  virtual bool capturing() = 0;
  virtual Graph end_capture(Stream stream) = 0;
  virtual std::vector<GraphNode> nodes(Graph graph) = 0;
  virtual GraphExec instantiate(Graph graph) = 0;
  virtual void replay(GraphExec graph, Stream stream) = 0;
  virtual void destroy_graph(Graph graph) = 0;
  virtual void destroy_graph_exec(GraphExec graph) = 0;
  // Tells the device that an allocator on top of it has freed this memory. If a graph that can
  // still be replayed holds an address in it, the next call of a simulated device throws
  // held_by_graph. This call does not throw, because destructors free memory.
  virtual void note_given_back(const void* /*begin*/, std::size_t /*bytes*/,
                               std::string_view /*label*/) {}
};

// All platform names, and the reason why this build cannot open one. Throws on an unknown name.
std::vector<std::string> known_platforms();
std::string why_unavailable(std::string_view platform);  // empty: can be opened
std::unique_ptr<Device> open_device(std::string_view platform, const Conditions& conditions = {});

// Kernels that saturate one unit of a device, so that plumb bench can measure its rate. Each
// function enqueues one launch and returns its amount of work: bytes read plus bytes written, or
// operations (two per multiply-add).
struct RateWork {
  plumb_status status = PLUMB_OK;
  double amount = 0;
};
struct RateKernels {
  // `to` and `from` are 16-byte aligned, and `bytes` is a multiple of 16.
  RateWork (*copy)(void* to, const void* from, std::int64_t bytes, Stream stream);
  // fp32 multiply-adds, and bf16 matrix products with fp32 sums; their data stays in registers and
  // shared memory. `out`: kRateThreads floats, one result per thread.
  RateWork (*multiply_add)(float* out, Stream stream);
  RateWork (*multiply_matrices)(float* out, Stream stream);
};
inline constexpr std::int64_t kRateThreads = 1 << 20;
// nullptr on simulated platforms, which have none.
const RateKernels* rate_kernels(std::string_view platform);

// nullptr if the implementation does not have the op.
const OpEntry* find_entry(const Implementation& implementation, std::string_view op);

// plumb's own kernels for a platform, and the same kernels compiled with checks (simulator only).
// builtin_implementation also has an entry for the occupancy hog of device/background_load.
const Implementation& builtin_implementation(std::string_view platform);
const Implementation& checked_implementation(std::string_view platform);

}  // namespace plumb::device
