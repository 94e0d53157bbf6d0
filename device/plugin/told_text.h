// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>

#include "device/plain_line.h"

namespace plumb::device {

// More of a plug-in's text is not read: its end may be missing.
inline constexpr std::size_t kMostToldBytes = 2000;

// As plain_line(). "" for null.
inline std::string told(const char* text) {
  return text == nullptr ? "" : plain_line({text, strnlen(text, kMostToldBytes)});
}

}  // namespace plumb::device
