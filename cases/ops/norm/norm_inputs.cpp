// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/norm/norm_inputs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace plumb::cases {

namespace {

std::uint16_t to_bf16(double value) {
  // Truncates. Most callers pass values that bf16 holds exactly, so that nothing is lost.
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

void fill_signs(HostTensor& x, std::int64_t row, std::uint64_t seed, double magnitude) {
  std::uint16_t* values = x.row<std::uint16_t>(row);
  for (std::int64_t i = 0; i < x.columns(); ++i) {
    const bool negative = random_bits(seed, static_cast<std::uint64_t>(i)) & 1;
    values[i] = to_bf16(negative ? -magnitude : magnitude);
  }
}

void fill_adversarial(HostTensor& x, std::int64_t row, std::uint64_t seed) {
  std::uint16_t* values = x.row<std::uint16_t>(row);
  const std::int64_t columns = x.columns();
  const auto position = static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(columns));
  switch (row % 8) {
    case 0: return fill_signs(x, row, seed, 0);
    case 1:
      fill_signs(x, row, seed, 0x1p-12);
      values[position] = to_bf16(0x1p14);  // the spike alone determines the mean square
      return;
    case 2: return fill_signs(x, row, seed, 0x1p-130);  // subnormal in bf16
    case 3: return fill_signs(x, row, seed, 0x1p50);    // large squares, sums below fp32's maximum
    case 4: return fill_signs(x, row, seed, 1.5 * 0x1p-20);  // eps is larger than the mean square
    case 5:
      fill_signs(x, row, seed, 1);
      values[position] = to_bf16(std::numeric_limits<double>::quiet_NaN());
      return;
    case 6:
      fill_signs(x, row, seed, 1);
      values[columns - 1] = to_bf16(-std::numeric_limits<double>::infinity());
      return;
    default: return fill_integers(x, row, row + 1, seed, 7);
  }
}

}  // namespace

void fill_norm_rows(HostTensor& x, std::int64_t live, std::uint64_t seed, const Step& step) {
  for (std::int64_t row = 0; row < live; ++row) {
    const std::uint64_t row_seed = mix(seed, static_cast<std::uint64_t>(row));
    if (step.fill == Fill::exact) {
      fill_signs(x, row, row_seed, std::ldexp(1.0, static_cast<int>(5 + row_seed % 5)));
    } else if (step.fill == Fill::adversarial) {
      fill_adversarial(x, row, row_seed);
    }
  }
  if (step.fill == Fill::real) fill_real(x, 0, live, seed, {});
  fill_dead(x, live, x.rows(), step.dead_rows);
}

void fill_norm_weight(HostTensor& weight, std::uint64_t seed, Fill fill) {
  std::uint16_t* values = weight.data<std::uint16_t>();
  for (std::int64_t i = 0; i < weight.elements(); ++i) {
    const auto counter = static_cast<std::uint64_t>(i);
    const double w = fill == Fill::exact
                         ? std::ldexp(1.0, static_cast<int>(integer(seed, counter, -2, 2)))
                         : 1 + 0.4 * normal(seed, counter);
    values[i] = to_bf16(w);
  }
}

reference::NormRounding rounding_of(plumb_rounding rounding) {
  if (rounding == PLUMB_ROUND_FACTOR) return reference::NormRounding::factor;
  return rounding == PLUMB_ROUND_TWICE ? reference::NormRounding::twice
                                       : reference::NormRounding::once;
}

plumb_status launch_plain_norm(const device::OpEntry& entry, plumb_rms_norm_params p,
                               device::Stream stream) {
  p.out_row_stride = p.hidden;
  p.eps = kNormEps;
  p.stream = stream;
  return entry.launch(&p);
}

RowMask promised_norm_rows(std::int64_t rows, std::int64_t live, DeadRows dead) {
  RowMask promised(static_cast<std::size_t>(rows), true);
  const bool ordinary = dead == DeadRows::zero || dead == DeadRows::foreign;
  for (std::int64_t row = live; row < rows; ++row) promised[row] = ordinary;
  return promised;
}

double norm_cost(std::int64_t rows, std::int64_t hidden) {
  // Each thread takes about 32 columns. Threads come in waves of 32, at most 16 of them.
  const double threads = std::clamp(std::ceil(static_cast<double>(hidden) / 1024), 1.0, 16.0) * 32;
  return static_cast<double>(rows) *
         (6.0 * static_cast<double>(hidden) + threads * (5 * kShuffleCost + kBarrierCost));
}

ReferenceWork norm_work(const TensorSet& tensors, std::int64_t rows, std::int64_t hidden) {
  return {.bytes = reference_bytes(tensors),
          .multiply_adds = 2 * static_cast<double>(rows * hidden),
          .rsqrts = static_cast<double>(rows)};
}

reference::Estimate mark_structured(reference::Estimate&& estimate, Fill fill) {
  estimate.structured = fill != Fill::real;
  return std::move(estimate);
}

}  // namespace plumb::cases
