// SPDX-License-Identifier: Apache-2.0
//
// A vendor that does not exist, so that device/gpu can be tested without a GPU. Its device is host
// memory, and its streams do everything at once.
#pragma once

#include <string>

#include "device/device.h"

#define PLUMB_GPU fake

namespace plumb::device::fake {

enum class NativeError { success, out_of_memory, no_device, capture };
inline constexpr NativeError kSuccess = NativeError::success;

ErrorKind error_kind_of(NativeError error);
const char* error_text(NativeError error);
const char* error_name(NativeError error);
inline void forget_last_error() {}

// How many objects of the fake runtime the process holds, and which call fails.
struct Ledger {
  int memory = 0, pinned = 0, streams = 0, events = 0, graphs = 0, captures = 0;
  int devices = 1;
  std::string failing_call;  // this call fails with `failure`, every time
  NativeError failure = NativeError::success;
  const void* pageable = nullptr;  // the only address that is pageable
};
Ledger& ledger();

}  // namespace plumb::device::fake
