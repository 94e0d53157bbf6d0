// SPDX-License-Identifier: Apache-2.0
//
// What a plug-in's process is asked, and how a message begins. Each request gets one answer with
// the number of the request and the id of the process that was started: a copy of it (the plug-in
// forked) cannot answer in its place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::device::remote {

// In the order of the table in server.cpp. The comments say what follows in request and answer.
enum class RemoteCall : std::uint32_t {
  properties,       // platform -> properties
  open,             // platform, conditions -> device
  close,            // device, as in all device calls below
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
  copy,  // end, end, bytes, stream
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
  settle,         // nothing: answered once all that was posted before has been carried out
  launch,         // entry, parameters, the tile plan if they have one -> status
  plan,           // as launch
  numerics,       // as launch -> numerics
  state_create,   // as launch -> state
  state_destroy,  // entry, state
  take_notes,     // -> texts
  call_own,       // OwnKernelCall, position of the own kernel, and as launch -> status
  count
};

enum class Status : std::uint32_t {
  done,
  device_error,  // fault, text
  error          // text
};

struct Header {
  std::uint64_t number = 0;
  std::int32_t process = 0;
  std::uint32_t kind = 0;  // Call or Status
  std::uint64_t bytes = 0;
};
inline constexpr std::uint64_t kLongestMessage = std::uint64_t{64} << 20;

// In `kind`: no answer is wanted. An error becomes the answer to the next call, which is then not
// carried out.
inline constexpr std::uint32_t kPosted = std::uint32_t{1} << 31;

// One end of a copy.
enum class CopyPlace : std::uint32_t { device, shared_buffer };
struct End {
  CopyPlace place = CopyPlace::device;
  std::uint64_t address = 0;  // in the shared buffer: an offset
};

// Through which the bytes of copies go. A longer copy goes in pieces.
inline constexpr std::size_t kSharedBytes = std::size_t{16} << 20;
// Shorter ones from this process go with the request.
inline constexpr std::size_t kInlineBytes = std::size_t{32} << 10;

}  // namespace plumb::device::remote
