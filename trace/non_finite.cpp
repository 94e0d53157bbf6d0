// SPDX-License-Identifier: Apache-2.0
#include "trace/non_finite.h"

#include <fmt/format.h>

#include <cstring>

namespace plumb::trace {

namespace {

// A floating-point format: its size, the mask of its exponent bits, and the bits of -infinity. A
// number is NaN or infinite if all exponent bits are set.
struct FloatFormat {
  std::size_t bytes = 0;
  std::uint64_t exponent = 0, negative_infinity = 0;
};

std::optional<FloatFormat> format_of(const ElementType& type) {
  if (type.name == "f16") return FloatFormat{2, 0x7c00, 0xfc00};
  if (type.name == "bf16") return FloatFormat{2, 0x7f80, 0xff80};
  if (type.name == "f32") return FloatFormat{4, 0x7f800000, 0xff800000};
  if (type.name == "f64") return FloatFormat{8, 0x7ff0000000000000, 0xfff0000000000000};
  return std::nullopt;
}

struct NonFinite {
  std::int64_t count = 0, first = 0;
};

NonFinite count_in(std::span<const std::byte> bytes, const FloatFormat& format) {
  NonFinite found;
  for (std::size_t i = 0; i < bytes.size() / format.bytes; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * format.bytes, format.bytes);
    if ((bits & format.exponent) != format.exponent || bits == format.negative_infinity) continue;
    if (found.count++ == 0) found.first = static_cast<std::int64_t>(i);
  }
  return found;
}

// Counts NaN and +infinity (-infinity is a mask). nullopt: the tensor has no format of format_of(),
// or was not recorded.
std::optional<NonFinite> non_finite_of(const TraceTensor& tensor, const StepBytes& bytes) {
  const auto format = format_of(tensor.type);
  if (!format || tensor.data.empty()) return std::nullopt;
  return count_in(bytes.of(tensor).bytes, *format);
}

}  // namespace

std::string unexplained_non_finite(const TraceCall& call, const StepBytes& bytes) {
  std::string first;
  for (const auto& [name, tensor] : call.after) {
    const auto found = non_finite_of(tensor, bytes);
    if (!found || found->count == 0) continue;
    first = fmt::format(
        "{}: {} NaN or infinite, the first at {}, and no input has one", name,
        found->count == 1 ? "1 element is" : fmt::format("{} elements are", found->count),
        tensor.coordinates(found->first));
    break;
  }
  if (first.empty()) return first;
  for (const auto& [name, tensor] : call.before) {
    if (tensor.data.empty() && tensor.elements() != 0) return "";
    const auto found = non_finite_of(tensor, bytes);
    if (found && found->count != 0) return "";
  }
  return first;
}

}  // namespace plumb::trace
