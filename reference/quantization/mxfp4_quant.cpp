// SPDX-License-Identifier: Apache-2.0
#include "reference/quantization/mxfp4_quant.h"

namespace plumb::reference {

namespace {

CodeFormat format_of(E2m1Policy policy) {
  switch (policy.ties) {
    case E2m1Ties::even:
      return policy.zero_has_sign ? CodeFormat::e2m1 : CodeFormat::e2m1_unsigned_zero;
    case E2m1Ties::toward_zero:
      return policy.zero_has_sign ? CodeFormat::e2m1_down : CodeFormat::e2m1_down_unsigned_zero;
    case E2m1Ties::away: break;
  }
  return policy.zero_has_sign ? CodeFormat::e2m1_away : CodeFormat::e2m1_away_unsigned_zero;
}

}  // namespace

GroupQuant mxfp4_quant(double amax_floor, E2m1Policy policy, ScaleRule scale_rule) {
  return {.code = format_of(policy),
          .largest = kE2m1Magnitudes.back(),
          .group = kMxGroup,
          .amax_floor = amax_floor,
          .scale_rule = scale_rule};
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
