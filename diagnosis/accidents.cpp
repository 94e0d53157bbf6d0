// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/accidents.h"

#include <map>
#include <string_view>
#include <utility>

#include "device/filler.h"

namespace plumb::cases {

namespace {

// Likely causes of a bad address, from the words of the finding; "" if these tell nothing.
std::string_view cause_of_address(const Failure& failure) {
  static constexpr std::pair<std::string_view, std::string_view> kCauses[] = {
      {device::kThroughNull,
       "a null pointer: a tensor that this case leaves out, or scratch that "
       "was not allocated"},
      {device::kReadsGoneParameters,
       "a kernel or launcher kept the address of its parameters, and reads them after the launcher "
       "returned: pass a copy"},
      {device::kReadsUnwritten,
       "an index, a size or a pointer that was read before it was written: by the launcher on the "
       "host, or from scratch or an output that no kernel has filled"},
      {device::kOfEarlierDevice,
       "a pointer that was kept from an earlier run or case: each has memory of its own"},
  };
  for (const auto& [words, cause] : kCauses) {
    for (const std::string& line : failure.lines) {
      if (line.find(words) != std::string::npos) return cause;
    }
  }
  return "";
}

}  // namespace

std::string accident_of(const CaseResult& result) {
  static const std::map<std::string_view, std::string_view> kAccidents{
      {"guard_damaged",
       "a store outside its tensor: whole vectors over a tail, a row or column too many, an offset "
       "in too few bits"},
      {"gap_written",
       "a store between rows: whole vectors over a tail, or a width instead of a stride"},
      {"input_changed",
       "a store into an input: a wrong pointer, or an in-place op that has to copy"},
      {"race",
       "two threads on one address, at least one of them writing: a barrier is missing, or "
       "threads pass different barriers"},
      {"out_of_bounds",
       "an address outside all tensors: an index without its check, or an offset in too few bits"},
      {"use_after_free", "a use of memory after it was freed"},
      {"uninitialized_read",
       "a read of unwritten memory: shared memory or scratch before its first store (a barrier is "
       "missing), or a tail that is not filled"},
      {"divergent_barrier", "a barrier inside a branch that not all threads take"},
      {"exited_lane", "a wave operation after some lanes have returned"},
      {"deadlock", "a wait for threads that never arrive"},
      {"launch_limits", "a grid, block or shared memory that this platform does not have"},
      {"capture_unsupported", "a call that a graph cannot record: an allocation or a wait"},
      {"capture_invalid", "work on a stream that the capture does not reach"},
      {"held_by_graph", "a buffer that grows or is freed, with its old address in a graph"},
      {"timeout", "a loop that does not end, or a wait for a value that no thread writes"},
  };
  if (result.failures.empty()) return "";
  const Failure& first = result.failures.front();
  if (first.kind == "out_of_bounds" || first.kind == "use_after_free") {
    if (const std::string_view cause = cause_of_address(first); !cause.empty())
      return std::string(cause);
  }
  const auto found = kAccidents.find(first.kind);
  return found == kAccidents.end() ? "" : std::string(found->second);
}

}  // namespace plumb::cases
