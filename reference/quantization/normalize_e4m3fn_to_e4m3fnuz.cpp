// SPDX-License-Identifier: Apache-2.0
#include "reference/quantization/normalize_e4m3fn_to_e4m3fnuz.h"

#include <algorithm>

namespace plumb::reference {

void normalize_e4m3fn_to_e4m3fnuz(std::span<std::uint8_t> codes, std::span<float> scales) {
  std::ranges::replace(codes, std::uint8_t{0x80}, std::uint8_t{0x00});
  for (float& scale : scales) scale *= 2;
}

}  // namespace plumb::reference
