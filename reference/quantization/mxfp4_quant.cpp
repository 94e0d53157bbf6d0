// SPDX-License-Identifier: Apache-2.0
#include "reference/quantization/mxfp4_quant.h"

#include "reference/formats/e2m1.h"

namespace plumb::reference {

GroupQuant mxfp4_quant(double amax_floor) {
  return {.code = CodeFormat::e2m1,
          .largest = kE2m1Magnitudes.back(),
          .group = kMxGroup,
          .amax_floor = amax_floor};
}

std::vector<std::uint8_t> unpack_codes(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> codes;
  codes.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    for (const int half : {0, 1}) codes.push_back(unpack_e2m1(byte, half));
  }
  return codes;
}

}  // namespace plumb::reference
