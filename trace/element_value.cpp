// SPDX-License-Identifier: Apache-2.0
#include "trace/element_value.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "reference/formats/bfloat16.h"

namespace plumb::trace {

namespace {

template <class T>
T number_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// IEEE 754 binary16: 5 bits of exponent with bias 15, and 10 of the fraction.
double decode_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent < 0x1f) return sign * std::ldexp(1024 + fraction, exponent - 25);
  return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::optional<RoundedFormat> rounded_format(const ElementType& type) {
  const auto format = [](int bits, int least, double largest) {
    return RoundedFormat{std::ldexp(1, -bits), std::ldexp(1, least - 1), largest};
  };
  if (type.name == "f16") return format(11, -24, 65504);
  if (type.name == "bf16") return format(8, -133, std::ldexp(255, 120));
  if (type.name == "f32") return format(24, -149, std::numeric_limits<float>::max());
  if (type.name == "i32") return RoundedFormat{.largest = std::numeric_limits<std::int32_t>::max()};
  return std::nullopt;
}

double element_value(const ElementType& type, const std::byte* bytes) {
  if (type.name == "f16") return decode_f16(number_at<std::uint16_t>(bytes));
  if (type.name == "bf16") return reference::decode_bf16(number_at<std::uint16_t>(bytes));
  if (type.name == "f32") return number_at<float>(bytes);
  return number_at<std::int32_t>(bytes);
}

std::string element_text(const ElementType& type, const std::byte* bytes) {
  if (type.name == "f64") return fmt::format("{:.17g}", number_at<double>(bytes));
  if (type.name == "i64") return fmt::format("{}", number_at<std::int64_t>(bytes));
  if (rounded_format(type)) return fmt::format("{:.9g}", element_value(type, bytes));
  std::string text = "0x";
  for (int i = type.bytes; i-- > 0;) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  }
  return text;
}

}  // namespace plumb::trace
