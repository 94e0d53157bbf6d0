// SPDX-License-Identifier: Apache-2.0
#include "cases/own_op/own_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

bool holds_floats(Dtype dtype) { return dtype == Dtype::bf16 || dtype == Dtype::f32; }

void put_number(HostTensor& tensor, std::int64_t row, std::int64_t column, double value) {
  switch (tensor.spec().dtype) {
    case Dtype::bf16:
      tensor.row<std::uint16_t>(row)[column] = reference::encode_bf16(static_cast<float>(value));
      break;
    case Dtype::f32: tensor.row<float>(row)[column] = static_cast<float>(value); break;
    case Dtype::u8: tensor.row<std::uint8_t>(row)[column] = static_cast<std::uint8_t>(value); break;
    case Dtype::i32:
      tensor.row<std::int32_t>(row)[column] = static_cast<std::int32_t>(value);
      break;
    case Dtype::i64:
      tensor.row<std::int64_t>(row)[column] = static_cast<std::int64_t>(value);
      break;
  }
}

double padding_of(DeadRows dead) {
  constexpr double kHuge = 1e30;
  switch (dead) {
    case DeadRows::zero: return 0;
    case DeadRows::nan: return std::numeric_limits<double>::quiet_NaN();
    case DeadRows::infinity: return std::numeric_limits<double>::infinity();
    case DeadRows::huge:
    case DeadRows::foreign: break;
  }
  return kHuge;
}

// Size of the live part of a tensor. rows: rows of the last dimension. columns: live columns, which
// are fewer than all only for a tensor of one dimension.
struct LivePart {
  std::int64_t rows = 0, columns = 0;
};
LivePart live_part(const HostTensor& tensor, bool padded, std::int64_t live) {
  const std::vector<std::int64_t>& shape = tensor.spec().shape;
  if (!padded) return {tensor.rows(), tensor.columns()};
  if (shape.size() == 1) return {tensor.rows(), live};
  const std::int64_t inside = shape.front() == 0 ? 0 : tensor.rows() / shape.front();
  return {live * inside, tensor.columns()};
}

// Writes value(row, column) to the live part.
void store_live(HostTensor& tensor, const LivePart& part, const auto& value) {
  for (std::int64_t row = 0; row < part.rows; ++row) {
    for (std::int64_t column = 0; column < part.columns; ++column) {
      put_number(tensor, row, column, value(row, column));
    }
  }
}
void store_padding(HostTensor& tensor, const LivePart& part, double value) {
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t column = row < part.rows ? part.columns : 0; column < tensor.columns();
         ++column) {
      put_number(tensor, row, column, value);
    }
  }
}

// No kernel may read the gaps between rows. They hold 0xff bytes: NaN as floats, -1 as integers.
void fill_row_gaps(HostTensor& tensor) {
  const std::size_t element = size_of(tensor.spec().dtype);
  for (std::int64_t row = 0; row + 1 < tensor.rows(); ++row) {
    const std::int64_t begin = tensor.row_offset(row) + tensor.columns();
    const std::int64_t end = tensor.row_offset(row + 1);
    if (end <= begin) continue;
    std::memset(tensor.bytes().data() + static_cast<std::size_t>(begin) * element, 0xff,
                static_cast<std::size_t>(end - begin) * element);
  }
}

// A random float between the two ends. exact: at a multiple of an eighth of the range. adversarial:
// one of the ends.
double float_between(const std::vector<double>& ends, Fill fill, std::uint64_t seed,
                     std::uint64_t i) {
  constexpr std::int64_t kParts = 8;
  const double range = ends[1] - ends[0];
  if (fill == Fill::real) return ends[0] + range * uniform(seed, i);
  const std::int64_t part = integer(seed, i, 0, fill == Fill::exact ? kParts : 1);
  return fill == Fill::exact ? ends[0] + range * static_cast<double>(part) / kParts
                             : ends[static_cast<std::size_t>(part)];
}

void fill_floats(const OwnTensor& declared, bool padded, const Step& step, std::uint64_t seed,
                 const LivePart& part, HostTensor& tensor) {
  constexpr std::int64_t kMostInteger = 3;
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return static_cast<std::uint64_t>(row * tensor.columns() + column);
  };
  if (!declared.between.empty()) {
    return store_live(tensor, part, [&](std::int64_t row, std::int64_t column) {
      return float_between(declared.between, step.fill, seed, at(row, column));
    });
  }
  if (step.fill == Fill::exact) {
    store_live(tensor, part, [&](std::int64_t row, std::int64_t column) {
      const std::int64_t most = kMostInteger;
      return static_cast<double>(integer(seed, at(row, column), -most, most));
    });
  } else if (tensor.spec().shape.size() < 2) {
    store_live(tensor, part, [&](std::int64_t row, std::int64_t column) {
      return declared.scale * normal(seed, at(row, column));
    });
  } else {
    fill_real(tensor, 0, part.rows, seed, {declared.scale, padded, padded});
  }
  if (step.fill != Fill::adversarial) return;
  // All values get one sign, so that biased errors add up. The first row of a batch becomes zero,
  // if it is not the only one.
  store_live(tensor, part, [&](std::int64_t row, std::int64_t column) {
    return padded && row == 0 && part.rows > 1 ? 0 : std::abs(tensor.value(row, column));
  });
}

}  // namespace

void fill_own_input(const OwnTensor& declared, bool padded, const Step& step, std::int64_t below,
                    std::uint64_t seed, HostTensor& tensor) {
  const LivePart part = live_part(tensor, padded, step.live);
  const bool foreign = step.dead_rows == DeadRows::foreign;
  fill_row_gaps(tensor);
  if (holds_floats(declared.dtype)) {
    fill_floats(declared, padded, step, seed, part, tensor);
    if (!foreign) store_padding(tensor, part, padding_of(step.dead_rows));
    return;
  }
  const std::int64_t most = std::max(declared.least, below - 1);
  store_live(tensor,
             step.dead_rows == DeadRows::zero || foreign ? part : live_part(tensor, false, 0),
             [&](std::int64_t row, std::int64_t column) {
               const auto at = static_cast<std::uint64_t>(row * tensor.columns() + column);
               return static_cast<double>(integer(seed, at, declared.least, most));
             });
  if (step.dead_rows == DeadRows::zero) store_padding(tensor, part, 0);
}

OwnInput own_input(const HostTensor& tensor, bool padded, std::int64_t live) {
  const LivePart part = live_part(tensor, padded, live);
  OwnInput input{tensor.spec().shape, {}};
  if (padded) input.shape.front() = live;
  std::vector<double> numbers;
  std::vector<std::int64_t> integers;
  const bool floats = holds_floats(tensor.spec().dtype);
  for (std::int64_t row = 0; row < part.rows; ++row) {
    for (std::int64_t column = 0; column < part.columns; ++column) {
      if (floats) {
        numbers.push_back(tensor.value(row, column));
      } else if (tensor.spec().dtype == Dtype::i64) {
        integers.push_back(tensor.row<std::int64_t>(row)[column]);
      } else {
        integers.push_back(static_cast<std::int64_t>(tensor.value(row, column)));
      }
    }
  }
  if (floats) {
    input.values = std::move(numbers);
  } else {
    input.values = std::move(integers);
  }
  return input;
}

}  // namespace plumb::cases
