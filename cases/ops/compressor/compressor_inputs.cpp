// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/compressor/compressor_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kRope = 64;

enum CompressorSalt : std::uint64_t {
  kLastPositions = 81,
  kStateBlocks,
  kStateKv,
  kStateScores,
  kStateKinds,
  kApe,
  kNormWeights,
  kAngles
};

// The last position of a group at or before `position`. Returns `position` itself if the request
// would then begin before its sequence.
std::int64_t end_of_group(const PartialStateShape& shape, std::int64_t position) {
  const std::int64_t end = (position + 1) / shape.ratio * shape.ratio - 1;
  return end < shape.queries - 1 ? position : end;
}

std::int64_t last_position(const PartialStateShape& shape, const Step& step, std::int64_t request) {
  const std::int64_t least = shape.queries - 1, most = shape.context - 1, r = shape.ratio;
  const std::uint64_t seed = mix(step.seed, kLastPositions);
  const auto place = static_cast<std::uint64_t>(request);
  if (step.fill == Fill::exact) {
    return end_of_group(shape, std::min(most, std::max(least, (request + 2) * r - 1)));
  }
  const std::int64_t any = integer(seed, place, least, most);
  if (step.fill == Fill::real)
    return random_bits(seed, ~place) % 4 ? end_of_group(shape, any) : any;
  std::vector<std::int64_t> edges = {
      r - 1, 2 * r - 1, 0, 3 * r - 1, shape.rows * r - 1, 2 * r, end_of_group(shape, most), most};
  std::erase_if(edges, [&](std::int64_t edge) { return edge < least || edge > most; });
  return edges[(random_bits(seed, 0) + place) % edges.size()];
}

// Numbers of the partial states of one request: kv and score of each position and channel.
class StateNumbers {
 public:
  StateNumbers(const PartialStateShape& shape, const Step& step, std::int64_t request)
      : shape_(shape),
        step_(step),
        request_(static_cast<std::uint64_t>(request)),
        kind_((random_bits(mix(step.seed, kStateKinds), 0) + request_) % 6) {}

  double kv(std::int64_t position, std::int64_t channel) const {
    const std::uint64_t seed = mix(mix(step_.seed, kStateKv), request_),
                        at = place(position, channel);
    if (step_.fill == Fill::exact) return random_bits(seed, at) % 2 ? 1 : -1;
    const double size = std::ldexp(1.0, shape_.kv_exponent);
    const double value = normal(seed, at);
    if (step_.fill == Fill::adversarial && kind_ == 4) return 1e-6 * size * value;
    // The values at even and at odd positions of a window cancel, except for a small rest.
    if (step_.fill == Fill::adversarial && kind_ == 5) {
      return size * ((position % 2 ? 1000.0 : -1000.0) + value);
    }
    const double of_request = std::ldexp(1.0, static_cast<int>(request_ % 9) - 4);
    return size * of_request * (random_bits(seed, ~at) % 64 == 0 ? 20 : 1) * value;
  }

  double score(std::int64_t position, std::int64_t channel) const {
    const std::uint64_t seed = mix(mix(step_.seed, kStateScores), request_);
    const std::uint64_t at = place(position, channel);
    // The scores of a window's positions are 64 apart, so that one position has all the weight.
    if (step_.fill == Fill::exact) {
      return 64.0 * static_cast<double>((position + 3 * channel) % shape_.window());
    }
    const double value = 2 * normal(seed, at);
    if (step_.fill == Fill::real) return value;
    const bool chosen = (position + channel) % shape_.window() == 1;
    switch (kind_) {
      case 0: return random_bits(seed, at) % 2 ? 1e4 : -1e4;
      case 1: return 3;
      case 2: return value + (chosen ? 50 : 0);
      case 3: return is_excluded(position, channel) ? -INFINITY : value;
      case 5: return 0;
      default: return value;
    }
  }

 private:
  // One place of each group, which depends on the channel: each place of a window is such a place.
  bool is_excluded(std::int64_t position, std::int64_t channel) const {
    const std::int64_t ratio = shape_.ratio;
    return ratio > 1 && position % ratio == channel % ratio;
  }
  std::uint64_t place(std::int64_t position, std::int64_t channel) const {
    return static_cast<std::uint64_t>(position * shape_.width() + channel);
  }

  const PartialStateShape& shape_;
  const Step& step_;
  std::uint64_t request_, kind_;
};

void write_state(const PartialStateShape& shape, const StateNumbers& numbers, std::int64_t position,
                 std::uint8_t* to) {
  const std::int64_t width = shape.width();
  for (std::int64_t i = 0; i < 2 * width; ++i) {
    const double value = i < width ? numbers.kv(position, i) : numbers.score(position, i - width);
    if (shape.form == PLUMB_STATE_RAW_BF16) {
      reinterpret_cast<std::uint16_t*>(to)[i] = reference::encode_bf16(value);
    } else {
      reinterpret_cast<float*>(to)[i] = static_cast<float>(value);
    }
  }
}

void fill_ape(const PartialStateShape& shape, const Step& step, HostTensor& ape) {
  const std::uint64_t seed = mix(step.seed, kApe);
  for (std::int64_t i = 0; i < shape.ratio * shape.width(); ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const double value =
        step.fill == Fill::exact ? static_cast<double>(integer(seed, at, -4, 4)) : normal(seed, at);
    ape.data<float>()[i] = static_cast<float>(value);
  }
}

void fill_norm_weight(const PartialStateShape& shape, const Step& step, HostTensor& weight) {
  const std::uint64_t seed = mix(step.seed, kNormWeights);
  for (std::int64_t i = 0; i < shape.head_dim; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    double value = static_cast<double>(integer(seed, at, 1, 4)) / 2;
    if (step.fill != Fill::exact) value = 1 + normal(seed, at) / 4;
    if (step.fill == Fill::adversarial && random_bits(seed, ~at) % 16 == 0) value = 0;
    weight.data<std::uint16_t>()[i] =
        reference::encode_bf16(std::ldexp(value, shape.weight_exponent));
  }
}

// Fills the table with cosines and sines: points of the unit circle. Row 0 has angle 0.
void fill_angles(const Step& step, HostTensor& cos_sin) {
  const std::uint64_t seed = mix(step.seed, kAngles);
  for (std::int64_t row = 0; row < cos_sin.rows(); ++row) {
    auto* to = cos_sin.row<float>(row);
    for (std::int64_t i = 0; i < kRope / 2; ++i) {
      const auto at = static_cast<std::uint64_t>(row * kRope + i);
      const std::uint64_t turn = row == 0 ? 0 : random_bits(seed, at) % 4;
      const double t = step.fill == Fill::exact || row == 0 ? 0 : uniform(seed, ~at);
      const double x = (1 - t * t) / (1 + t * t), y = 2 * t / (1 + t * t);
      const double cosines[] = {x, -y, -x, y}, sines[] = {y, x, -y, -x};
      to[i] = static_cast<float>(cosines[turn]);
      to[kRope / 2 + i] = static_cast<float>(sines[turn]);
    }
  }
}

// Enters the blocks of the request's windows in `table`, and writes the partial states of all
// positions in these windows.
void fill_request(const PartialStateShape& shape, const Step& step, std::int64_t request,
                  std::int64_t last, const std::int64_t* blocks, std::int32_t* table,
                  HostTensor& states) {
  const std::int64_t first =
      std::max<std::int64_t>(0, last - shape.queries + 1 - shape.window() + 1);
  const StateNumbers numbers(shape, step, request);
  for (std::int64_t position = first; position <= last; ++position) {
    const std::int64_t column = position / shape.rows, block = blocks[column - first / shape.rows];
    table[column] = static_cast<std::int32_t>(shape.blocks.address(block));
    write_state(shape, numbers, position,
                states.row<std::uint8_t>(block) + position % shape.rows * shape.row_stride_bytes);
  }
}

std::int64_t blocks_of_request(const PartialStateShape& shape) {
  return (shape.window() + shape.queries + shape.rows - 1) / shape.rows + 1;
}

}  // namespace

std::int64_t needed_state_blocks(const PartialStateShape& shape) {
  return shape.requests() * blocks_of_request(shape) + 2;
}

void fill_partial_states(const PartialStateShape& shape, const Step& step, TensorSet& tensors) {
  check_blocks(shape.blocks.blocks, needed_state_blocks(shape));
  HostTensor &states = tensors.at("states"), &table = tensors.at("block_table");
  std::ranges::fill(states.bytes(), std::byte{0xff});
  std::ranges::fill(table.bytes(), std::byte{0});
  auto* requests = tensors.at("token_to_req").data<std::int32_t>();
  auto* positions = tensors.at("positions").data<std::int64_t>();
  auto* slots = tensors.at("state_slot_mapping").data<std::int64_t>();
  const std::vector<std::int64_t> blocks =
      permuted_blocks(shape.blocks.blocks, mix(step.seed, kStateBlocks));
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    const std::int64_t request = token / shape.queries;
    const std::int64_t last = last_position(shape, step, request);
    if (token >= step.live) {
      requests[token] = 0;
      slots[token] = -1;
      if (step.dead_rows != DeadRows::foreign) positions[token] = 0;
      continue;
    }
    auto* blocks_of = table.row<std::int32_t>(request);
    if (token % shape.queries == 0) {
      fill_request(shape, step, request, last, blocks.data() + request * blocks_of_request(shape),
                   blocks_of, states);
    }
    requests[token] = static_cast<std::int32_t>(request);
    positions[token] = last - shape.queries + 1 + token % shape.queries;
    slots[token] = std::int64_t{blocks_of[positions[token] / shape.rows]} * shape.rows +
                   positions[token] % shape.rows;
  }
  if (shape.form != PLUMB_STATE_BIASED) fill_ape(shape, step, tensors.at("ape"));
  fill_norm_weight(shape, step, tensors.at("weight"));
  fill_angles(step, tensors.at("cos_sin"));
}

reference::CompressedStates reference_states(const PartialStateShape& shape,
                                             const TensorSet& tensors,
                                             const std::vector<std::int64_t>& closing) {
  reference::CompressedStates input;
  const auto* positions = tensors.at("positions").data<std::int64_t>();
  for (const std::int64_t token : closing) input.positions.push_back(positions[token]);
  input.head_dim = shape.head_dim;
  input.ratio = shape.ratio;
  input.overlap = shape.overlap;
  const HostTensor &states = tensors.at("states"), &table = tensors.at("block_table");
  const auto* requests = tensors.at("token_to_req").data<std::int32_t>();
  for (const std::int64_t token : closing) {
    const std::int64_t position = positions[token], request = requests[token];
    const bool in_tables = position >= 0 && position < tensors.at("cos_sin").rows() &&
                           request >= 0 && request < table.rows() &&
                           position / shape.rows < table.columns();
    if (!in_tables) {
      throw BadRow(fmt::format("token {}: position {} of request {} is in no table", token,
                               position, request));
    }
  }
  input.partial_state = [=, &states, &table](std::int64_t row, std::int64_t position) {
    const auto* blocks = table.row<std::int32_t>(requests[closing[static_cast<std::size_t>(row)]]);
    const std::int64_t block = shape.blocks.block_at(blocks[position / shape.rows]);
    if (block < 0) throw BadRow("a block of partial states that there is not");
    return states.row<std::uint8_t>(block) + position % shape.rows * shape.row_stride_bytes;
  };
  input.bf16 = shape.form == PLUMB_STATE_RAW_BF16;
  if (shape.form != PLUMB_STATE_BIASED) input.ape = tensors.at("ape").data<float>();
  input.weight = tensors.at("weight").data<std::uint16_t>();
  input.cos_sin = tensors.at("cos_sin").data<float>();
  return input;
}

}  // namespace plumb::cases
