// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>

#include "device/plain_line.h"

namespace plumb::device {

// Most bytes of a plug-in's text that are read: its terminator may be missing.
inline constexpr std::size_t kMostToldBytes = 2000;

// plain_line() of the text; "" for null.
inline std::string told(const char* text) {
  return text == nullptr ? "" : plain_line({text, strnlen(text, kMostToldBytes)});
}

}  // namespace plumb::device
