// SPDX-License-Identifier: Apache-2.0
//
// Requests to a plug-in's process, and the header of a message. A request gets one answer, unless
// it is posted (kPosted). The answer has the number of the request and the id of the process that
// was started. So a copy of the process that the plug-in forked cannot answer in its place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::device::remote {

// In the order of kHandlers in device_calls.cpp. Comments say what request -> answer contain.
enum class RemoteCall : std::uint32_t {
  properties,       // platform -> properties
  open,             // platform, conditions -> device
  close,            // device: the first argument of all device calls below, too
  allocate,         // bytes, label -> address
  allocate_sparse,  // bytes, label -> address
  free,             // address
  allocate_pinned,  // bytes -> address
  free_pinned,      // address
  write_pinned,     // address, bytes: from the shared buffer, at once
  read_pinned,      // address, bytes: to the shared buffer, at once
  check_guards,     // -> damage
  create_stream,    // -> stream
  destroy_stream,
  create_event,
  destroy_event,
  record,
  wait,
  synchronize_event,
  create_timing_event,
  elapsed_seconds,
  synchronize_stream,
  synchronize,
  copy,  // to (an End), from (an End), bytes, stream
  fill,  // address, value, bytes, stream
  take_launch_error,
  begin_capture,
  capturing,
  end_capture,
  nodes,
  instantiate,
  replay,
  destroy_graph,
  destroy_graph_exec,
  copy_inline,    // address, bytes, stream, and the bytes themselves
  settle,         // nothing; answered when all requests posted before are carried out
  launch,         // entry, parameters, the tile plan if they have one -> status
  plan,           // arguments of launch
  numerics,       // arguments of launch -> numerics
  state_create,   // arguments of launch -> state
  state_destroy,  // entry, state
  take_notes,     // -> texts
  call_own,       // OwnKernelCall, position of the own kernel, arguments of launch -> status
  count
};

enum class Status : std::uint32_t {
  done,
  device_error,  // kind of the error, text
  error          // text
};

struct Header {
  std::uint64_t number = 0;
  std::int32_t process = 0;
  std::uint32_t kind = 0;  // a RemoteCall or a Status
  std::uint64_t bytes = 0;
};
inline constexpr std::uint64_t kLongestMessage = std::uint64_t{64} << 20;

// Flag in `kind`: the request gets no answer. Its error becomes the answer to the next request that
// is not posted, which is then not carried out (except settle and close).
inline constexpr std::uint32_t kPosted = std::uint32_t{1} << 31;

// One end of a copy.
enum class CopyPlace : std::uint32_t { device, shared_buffer };
struct End {
  CopyPlace place = CopyPlace::device;
  std::uint64_t address = 0;  // for shared_buffer: offset in the buffer
};

// Size of the buffer through which the bytes of copies go. Longer copies go in pieces.
inline constexpr std::size_t kSharedBytes = std::size_t{16} << 20;
// Copies from this process up to this size are sent within the request.
inline constexpr std::size_t kInlineBytes = std::size_t{32} << 10;

}  // namespace plumb::device::remote
