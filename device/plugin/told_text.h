// SPDX-License-Identifier: Apache-2.0
//
// Text that a plug-in wrote, for reports: it could steer a terminal.
#pragma once

#include <string>

namespace plumb::device {

// At most so many bytes of it are taken: its end may be missing.
inline constexpr std::size_t kMostToldBytes = 2000;

// One line without control characters. "" for null.
inline std::string told(const char* text) {
  std::string line;
  for (; text != nullptr && *text != '\0' && line.size() < kMostToldBytes; ++text) {
    const bool control = static_cast<unsigned char>(*text) < 0x20 || *text == 0x7f;
    line += control ? ' ' : *text;
  }
  return line;
}

}  // namespace plumb::device
