// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/norm/rope_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cases/tensors/bad_row.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

// Positions whose rows of cos_sin exist: small ones, powers of two and their neighbours, and the
// last positions of V3.2 (163839) and of V4 (1048575).
const std::vector<std::int64_t> kExisting{0,     1,     2,     3,      31,      32,     33,   63,
                                          64,    127,   128,   255,    256,     1000,   4095, 4096,
                                          32767, 65535, 65536, 163839, 1048574, 1048575};

constexpr int kPairs = reference::kRopeDim / 2;

struct RotationAngle {
  double cosine, sine;
};

RotationAngle quarters(std::uint64_t bits) {
  constexpr RotationAngle kQuarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  return kQuarters[bits % 4];
}

// A point of the unit circle from its rational parametrisation. Every operation is exactly rounded,
// so that all platforms get the same bits.
RotationAngle any_turn(std::uint64_t seed, std::uint64_t counter) {
  const double t = uniform(seed, counter), norm = 1 + t * t;
  const RotationAngle turn = quarters(random_bits(seed, ~counter));
  const double x = (1 - t * t) / norm, y = 2 * t / norm;
  return {turn.cosine * x - turn.sine * y, turn.sine * x + turn.cosine * y};
}

RotationAngle turn_of(Fill fill, std::uint64_t seed, std::uint64_t counter) {
  constexpr double kEighth = 0.70710678118654752, kYarn = 1.2772588722239782;
  const std::uint64_t bits = random_bits(seed ^ 1, counter);
  if (fill == Fill::exact) return quarters(bits);
  const RotationAngle turn = any_turn(seed, counter);
  if (fill == Fill::real) return turn;
  switch (bits / 4 % 4) {
    case 0: return quarters(bits);
    case 1: return {kEighth, bits % 2 == 0 ? kEighth : -kEighth};
    case 2: return {kYarn * turn.cosine, kYarn * turn.sine};
    default: return turn;
  }
}

}  // namespace

Positions positions_of(const Row& row) {
  return row.word("positions") == "ascending" ? Positions::ascending : Positions::any;
}

void place_rope(TensorSpec& spec) {
  if (spec.name != "cos_sin") return;
  spec.sparse = true;
  spec.placement = kExisting;
}

void fill_rope(const Step& step, Positions how, TensorSet& tensors) {
  HostTensor& positions = tensors.at("positions");
  HostTensor& cos_sin = tensors.at("cos_sin");
  const std::uint64_t turns = mix(step.seed, 31), choices = mix(step.seed, 32);
  for (std::int64_t row = 0; row < cos_sin.rows(); ++row) {
    for (int pair = 0; pair < kPairs; ++pair) {
      const auto counter = static_cast<std::uint64_t>(row * kPairs + pair);
      const RotationAngle turn =
          row == 0 ? RotationAngle{1, 0} : turn_of(step.fill, turns, counter);
      cos_sin.row<float>(row)[pair] = static_cast<float>(turn.cosine);
      cos_sin.row<float>(row)[kPairs + pair] = static_cast<float>(turn.sine);
    }
  }
  const auto count = static_cast<std::int64_t>(kExisting.size());
  for (std::int64_t token = 0; token < step.live; ++token) {
    const std::int64_t chosen = integer(choices, static_cast<std::uint64_t>(token), 0, count - 1);
    positions.data<std::int64_t>()[token] =
        kExisting[how == Positions::any ? chosen : token % count];
  }
  if (step.dead_rows == DeadRows::foreign) return;
  std::fill(positions.data<std::int64_t>() + step.live,
            positions.data<std::int64_t>() + positions.elements(), 0);
}

std::vector<std::int64_t> rope_rows(const TensorSet& tensors) {
  const HostTensor& positions = tensors.at("positions");
  const auto* first = positions.data<std::int64_t>();
  std::vector<std::int64_t> rows(first, first + positions.elements());
  const HostTensor& cos_sin = tensors.at("cos_sin");
  const auto& existing = cos_sin.spec().placement;
  if (existing.empty()) {  // all rows of cos_sin exist
    for (const std::int64_t row : rows) {
      if (row >= 0 && row < cos_sin.rows()) continue;
      throw BadRow(
          fmt::format("a token has the position {}, and cos_sin has {} rows", row, cos_sin.rows()));
    }
    return rows;
  }
  for (std::int64_t& row : rows) {
    row = std::lower_bound(existing.begin(), existing.end(), row) - existing.begin();
  }
  return rows;
}

HostTensor columns_of(const HostTensor& tensor, std::string_view name, std::int64_t begin,
                      std::int64_t end) {
  TensorSpec spec{std::string(name), Dtype::bf16, {tensor.rows(), end - begin}, {}};
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) rows.push_back(tensor.row_offset(row));
  const auto bit = [rows = std::move(rows), begin](std::int64_t row, std::int64_t column) {
    return 16 * (rows[static_cast<std::size_t>(row)] + begin + column);
  };
  spec.origin = std::make_shared<const Origin>(Origin{tensor.spec().name, bit});
  HostTensor columns(std::move(spec));
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const auto* from = tensor.row<std::uint16_t>(row);
    std::copy(from + begin, from + end, columns.row<std::uint16_t>(row));
  }
  return columns;
}

}  // namespace plumb::cases
