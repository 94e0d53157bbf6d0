// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/quantization/quant_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "cases/judge/right_values.h"
#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

using reference::CodeFormat;
using reference::encode_bf16;
using reference::GroupQuant;

// One group of a row, while it is filled.
struct Group {
  std::uint16_t* x;
  std::int64_t count;
  std::uint64_t seed;
  const GroupQuant& how;

  std::uint64_t bits(std::int64_t i) const {
    return random_bits(seed, static_cast<std::uint64_t>(i));
  }
  void set(std::int64_t i, double value) const { x[i] = encode_bf16(value); }
  double signed_by(std::int64_t i, double size) const { return bits(i) >> 63 ? -size : size; }
  // Sets one element, at a place that the seed chooses.
  void set_one(double value) const {
    set(static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(count)), value);
  }
};

// A magnitude that the code format has, from zero to `largest`.
double some_code(const GroupQuant& how, std::uint64_t bits) {
  const std::uint64_t codes = reference::encode(how.code, how.largest) + 1U;
  return decode(how.code, static_cast<std::uint16_t>(bits % codes));
}

// A magnitude halfway between two neighbouring codes.
double some_tie(const GroupQuant& how, std::uint64_t bits) {
  const std::uint64_t codes = reference::encode(how.code, how.largest);
  const auto code = static_cast<std::uint16_t>(bits % codes);
  return (decode(how.code, code) + decode(how.code, static_cast<std::uint16_t>(code + 1))) / 2;
}

void fill_codes(const Group& group, double (&choose)(const GroupQuant&, std::uint64_t), int least,
                int most) {
  const double scale = std::ldexp(1.0, static_cast<int>(integer(group.seed, 1, least, most)));
  for (std::int64_t i = 0; i < group.count; ++i) {
    group.set(i, group.signed_by(i, scale * choose(group.how, group.bits(i) >> 8)));
  }
  group.set_one(group.signed_by(0, scale * group.how.largest));
}

void fill_normal(const Group& group, double scale) {
  for (std::int64_t i = 0; i < group.count; ++i) {
    group.set(i, scale * normal(group.seed, static_cast<std::uint64_t>(i)));
  }
}

// Sets amax to a power of two times the divisor of scales, where a rounded scale changes, or to the
// next bf16 number above or below.
void fill_beside_power(const Group& group) {
  fill_normal(group, 1);
  const double scale = std::ldexp(1.0, static_cast<int>(integer(group.seed, 1, -3, 3)));
  const auto edge = encode_bf16(4 * scale * group.how.scale_divisor());
  const auto off = static_cast<std::uint16_t>(integer(group.seed, 2, -1, 1));
  group.x[group.seed % static_cast<std::uint64_t>(group.count)] =
      static_cast<std::uint16_t>(edge + off);
}

// Groups with values of sizes around the floors in use: 1e-4 on amax, 1e-4 on the scale, and 6 *
// 2^-126 on amax.
void fill_tiny(const Group& group) {
  constexpr double kSizes[] = {1e-9, 0.6e-4, 1.4e-4, 0.03, 0.06, 2e-36};
  constexpr double kLeast[] = {1e-9, 0.6e-4, 1.4e-4, 0x1p-125, 0x1.2p-124, 0x1.8p-124, 0x1.ap-124};
  const std::span<const double> sizes = group.how.amax_floor > 0 && group.how.amax_floor < 1e-30
                                            ? std::span<const double>(kLeast)
                                            : kSizes;
  const double size = sizes[group.seed % std::size(sizes)];
  for (std::int64_t i = 0; i < group.count; ++i) {
    group.set(i, group.signed_by(i, size * uniform(group.seed, static_cast<std::uint64_t>(i))));
  }
  group.set_one(-size);
}

void fill_adversarial(const Group& group, std::int64_t style) {
  switch (style % 9) {
    case 0:
      for (std::int64_t i = 0; i < group.count; ++i) group.set(i, group.signed_by(i, 0));
      return;
    case 1: return fill_codes(group, some_tie, -4, 4);
    case 2: return fill_beside_power(group);
    case 3:  // all but one element underflow, half of them from below zero
      for (std::int64_t i = 0; i < group.count; ++i) group.set(i, group.signed_by(i, 1e-9));
      return group.set_one(3.7);
    case 4: return fill_tiny(group);
    case 5: fill_normal(group, 1e-2); return group.set_one(-1000);
    case 6: return fill_codes(group, some_code, -10, 10);
    case 7: return fill_normal(group, 1e36);
    default: {
      constexpr double kGolden[] = {3.7, -1, 0.1, 0, -0.0, -1e-9};
      for (std::int64_t i = 0; i < group.count; ++i) group.set(i, kGolden[i % 6]);
    }
  }
}

// Gaps between rows hold large numbers, so that a kernel that reads them gets a wrong amax.
void fill_gaps(HostTensor& x) {
  constexpr std::uint16_t kHuge = 0x7b7b;
  for (std::int64_t row = 0; row + 1 < x.rows(); ++row) {
    std::fill(x.row<std::uint16_t>(row) + x.columns(), x.row<std::uint16_t>(row + 1), kHuge);
  }
}

}  // namespace

void fill_quant_rows(HostTensor& x, std::int64_t live, std::uint64_t seed, const Step& step,
                     const GroupQuant& how) {
  if (step.fill == Fill::real) fill_real(x, 0, live, seed, {});
  for (std::int64_t row = 0; row < live && step.fill != Fill::real; ++row) {
    for (std::int64_t begin = 0; begin < x.columns(); begin += how.group) {
      const std::int64_t index = row * how.groups(x.columns()) + begin / how.group;
      const Group group{x.row<std::uint16_t>(row) + begin, std::min(how.group, x.columns() - begin),
                        mix(seed, static_cast<std::uint64_t>(index)), how};
      if (step.fill == Fill::exact) {
        fill_codes(group, some_code, -6, 6);
      } else {
        fill_adversarial(group, index + static_cast<std::int64_t>(seed % 9));
      }
    }
  }
  fill_dead(x, live, x.rows(), step.dead_rows);
  fill_gaps(x);
}

RowMask finite_rows(const HostTensor& x) {
  RowMask finite;
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    const auto* values = x.row<std::uint16_t>(row);
    finite.push_back(std::all_of(values, values + x.columns(), [](std::uint16_t bits) {
      return (bits & reference::kInfinityBf16) != reference::kInfinityBf16;
    }));
  }
  return finite;
}

RowMask promised_quant_rows(std::int64_t rows, std::int64_t live, DeadRows dead) {
  RowMask promised(static_cast<std::size_t>(rows), true);
  const bool finite = dead != DeadRows::nan && dead != DeadRows::infinity;
  for (std::int64_t row = live; row < rows; ++row) promised[row] = finite;
  return promised;
}

reference::Bf16Rows bf16_rows(const HostTensor& x) {
  return {x.data<std::uint16_t>(), x.rows(), x.columns(), x.spec().strides.front()};
}

std::uint8_t byte_of_scale(float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  return (bits & 0x807fffffu) == 0 ? static_cast<std::uint8_t>(bits >> 23) : std::uint8_t{255};
}

HostTensor bytes_of_scales(std::string name, std::int64_t rows, std::int64_t columns,
                           const std::vector<double>& scales,
                           const std::shared_ptr<const Origin>& origin) {
  TensorSpec spec{.name = std::move(name), .dtype = Dtype::u8, .shape = {rows, columns}};
  if (origin) {
    Origin as_scale = *origin;
    as_scale.width = 32;
    as_scale.encode = &scale_of_byte;
    spec.origin = std::make_shared<const Origin>(std::move(as_scale));
  }
  HostTensor bytes(std::move(spec));
  std::ranges::transform(scales, bytes.data<std::uint8_t>(),
                         [](double scale) { return byte_of_scale(static_cast<float>(scale)); });
  return bytes;
}

std::uint64_t scale_of_byte(std::uint64_t byte) {
  const double scale = decode(CodeFormat::ue8m0, static_cast<std::uint16_t>(byte));
  return std::bit_cast<std::uint32_t>(static_cast<float>(scale));
}

namespace {

// Truth of fp32 scales: each is within its bound, and none is below the floor `least`.
class ScaleTruth final : public Truth {
 public:
  ScaleTruth(Expectation values, double least) : values_(std::move(values)), least_(least) {}

  TensorReport compare(const HostTensor& scales, const RowMask& promised,
                       const ColumnRanges& columns) const override {
    TensorReport report = values_.truth->compare(scales, promised, columns);
    const std::vector<std::int64_t> rows = rows_below(scales, promised);
    if (rows.empty()) return report;
    report.failures.push_back(fmt::format("{}: scales below {:g} in {}", report.tensor, least_,
                                          rows_of(rows, report.rows_total)));
    std::vector<std::int64_t> wrong;
    std::ranges::set_union(report.wrong_rows, rows, std::back_inserter(wrong));
    report.wrong_rows = std::move(wrong);
    return report;
  }
  void put(const HostTensor& scales, const RowMask& promised, const ColumnRanges& columns,
           RightValues& right) const override {
    values_.truth->put(scales, promised, columns, right);
  }
  const reference::Estimate* estimate() const override { return values_.truth->estimate(); }

 private:
  std::vector<std::int64_t> rows_below(const HostTensor& scales, const RowMask& promised) const {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < scales.rows(); ++row) {
      if (!is_promised(promised, row)) continue;
      const float* values = scales.row<float>(row);
      const bool right = std::all_of(values, values + scales.columns(),
                                     [&](float scale) { return double{scale} >= least_; });
      if (!right) rows.push_back(row);
    }
    return rows;
  }

  Expectation values_;
  double least_;
};

}  // namespace

Expectation expect_fp32_scales(const HostTensor& scales, const reference::Bf16Rows& x,
                               const GroupQuant& how, const reference::Numerics& numerics,
                               const RowMask& promised) {
  Expectation values = expect_floats(scales, group_scales(x, how, numerics), promised,
                                     groups_of(scales.rows(), 64, "64 rows"));
  auto truth = std::make_shared<const ScaleTruth>(values, how.scale_floor);
  values.truth = std::move(truth);
  return values;
}

FloatOfInteger quant_floor(std::string parameter) {
  const auto value = [](std::int64_t exponent) {
    return exponent == 0 ? 0.0F : exponent == -4 ? 1e-4F : 1e-10F;
  };
  return {.parameter = std::move(parameter), .value = value, .most = 0, .least = -10};
}

double quant_cost(std::int64_t groups, std::int64_t elements) {
  return static_cast<double>(groups) * 8 * (3 * kShuffleCost + 20) +
         10 * static_cast<double>(elements);
}

}  // namespace plumb::cases
