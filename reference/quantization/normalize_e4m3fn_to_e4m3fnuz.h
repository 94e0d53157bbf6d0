// SPDX-License-Identifier: Apache-2.0
//
// Converts weights in place as a gfx942 does when it loads e4m3fn weights: the same bytes are read
// as fnuz, which halves their values, and the scales are doubled. 0x80 becomes 0x00. The NaN codes
// 0x7F and 0xFF silently become +240 and -240 (operations spec, 9.5).
#pragma once

#include <cstdint>
#include <span>

namespace plumb::reference {

void normalize_e4m3fn_to_e4m3fnuz(std::span<std::uint8_t> codes, std::span<float> scales);

}  // namespace plumb::reference
