// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/rounding_hypotheses.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace plumb::cases {

namespace {

float half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const auto fraction = static_cast<float>(bits & 0x3ff);
  if (exponent == 31) return fraction == 0 ? INFINITY : NAN;
  const float size =
      exponent == 0 ? fraction * 0x1p-24f : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

// `value` truncated towards zero to bf16.
std::uint16_t cut_off(double value) {
  auto single = static_cast<float>(value);
  if (std::abs(double{single}) > std::abs(value)) single = std::nextafter(single, 0.0F);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

}  // namespace

bool is_compared(const TensorSpec& spec) {
  return spec.role == Role::output || spec.role == Role::scratch || spec.role == Role::state;
}

std::optional<TensorSet> cut_off_results(const Problem& problem,
                                         const device::OpEntry& right_kernel,
                                         const CaseEvidence& evidence, const TensorSet& right) {
  TensorSet set = right;
  bool any = false;
  const plumb_numerics& declared = right_kernel.numerics;
  for (const Expectation& one :
       problem.expect(evidence.step, evidence.tensors, to_reference(declared), declared)) {
    const reference::Estimate* const estimate = one.truth->estimate();
    const std::string& name = one.stored->spec().name;
    if (estimate == nullptr || !set.contains(name)) continue;
    HostTensor& result = set.at(name);
    if (!is_compared(result.spec()) || result.spec().dtype != Dtype::bf16 ||
        result.elements() != estimate->rows * estimate->columns) {
      continue;
    }
    any = true;
    const HostTensor& observed = evidence.tensors.at(name);
    for (std::int64_t i = 0; i < result.elements(); ++i) {
      const std::int64_t row = i / result.columns(), column = i % result.columns();
      const double exact = estimate->centre(i);
      if (!std::isfinite(exact)) continue;
      const double error = estimate->arithmetic(i);
      const std::uint16_t seen = observed.row<std::uint16_t>(row)[column];
      const std::uint16_t low = cut_off(exact - error), high = cut_off(exact + error);
      result.row<std::uint16_t>(row)[column] = seen == low || seen == high ? seen : cut_off(exact);
    }
  }
  if (!any) return std::nullopt;
  return set;
}

std::optional<TensorSet> stored_as_fp16(const CaseEvidence& evidence, const TensorSet& right) {
  TensorSet set = right;
  std::int64_t all = 0, hits = 0;
  for (HostTensor& result : set.all()) {
    if (!is_compared(result.spec()) || result.spec().dtype != Dtype::bf16) continue;
    const auto* observed = evidence.tensors.at(result.spec().name).data<std::uint16_t>();
    auto* bits = result.data<std::uint16_t>();
    for (std::int64_t i = 0; i < result.extent(); ++i) {
      const std::uint32_t wide = std::uint32_t{bits[i]} << 16;
      float value = 0;
      std::memcpy(&value, &wide, sizeof value);
      const bool fits = std::abs(half_value(observed[i]) - value) <= 0x1p-7f * std::abs(value);
      all += value != 0;
      hits += fits && value != 0;
      bits[i] = fits ? observed[i] : static_cast<std::uint16_t>(bits[i] ^ 0xffff);
    }
  }
  if (2 * hits < all) return std::nullopt;
  return set;
}

}  // namespace plumb::cases
