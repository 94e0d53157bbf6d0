// SPDX-License-Identifier: Apache-2.0
//
// Removes control characters from texts of plug-ins, commits and files before they are printed:
// escape sequences in them would control the terminal.
#pragma once

#include <string>
#include <string_view>

namespace plumb::device {

// `text` with each control character (ASCII, and U+0080 to U+009F in UTF-8) replaced by a space.
inline std::string plain_line(std::string_view text) {
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool pair = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    line += pair || byte < 0x20 || byte == 0x7f ? ' ' : text[i];
    i += pair;
  }
  return line;
}

}  // namespace plumb::device
