// SPDX-License-Identifier: Apache-2.0
#include "reference/formats/e4m3.h"

#include <algorithm>
#include <limits>

namespace plumb::reference {

namespace {

constexpr bool is_nan_code(int code, Dialect dialect) {
  return dialect == Dialect::e4m3fn ? (code & 0x7F) == 0x7F : code == 0x80;
}

constexpr std::array<double, 256> make_values(Dialect dialect) {
  std::array<double, 256> values{};
  for (int code = 0; code < 256; ++code) {
    const int field = code >> 3 & 15, mantissa = code & 7;
    // Subnormal codes have the exponent of the least normal value and no implicit leading one.
    const int significand = field == 0 ? mantissa : 8 + mantissa;
    const int exponent = std::max(field, 1) - e4m3_bias(dialect) - 3;
    const double size = significand * detail::power_of_two(exponent);
    values[code] = code & 0x80 ? -size : size;
    if (is_nan_code(code, dialect)) values[code] = std::numeric_limits<double>::quiet_NaN();
  }
  return values;
}

constexpr auto kFn = make_values(Dialect::e4m3fn);
constexpr auto kFnuz = make_values(Dialect::e4m3fnuz);

}  // namespace

const std::array<double, 256>& e4m3_values(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? kFn : kFnuz;
}

}  // namespace plumb::reference
