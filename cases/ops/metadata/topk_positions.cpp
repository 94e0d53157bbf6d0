// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/metadata/topk_positions.h"

#include <limits>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

constexpr auto kMostPosition = std::numeric_limits<std::int32_t>::max();

std::int32_t position(const TopKPositionsShape& shape, const Step& step, std::int64_t place) {
  const std::int64_t covered = shape.blocks.positions();
  if (step.fill == Fill::exact) return static_cast<std::int32_t>(place % shape.topk % covered);
  const std::uint64_t bits = random_bits(mix(step.seed, 1), place);
  const auto any = static_cast<std::int32_t>(static_cast<std::int64_t>(bits >> 33) % covered);
  if (step.fill == Fill::real) return any;
  const auto end = static_cast<std::int32_t>(covered);
  const std::int32_t edges[] = {
      0, end - 1, any, -1, any, any, end, kMostPosition, -kMostPosition - 1};
  return edges[bits % (shape.out_of_range ? std::size(edges) : 6)];
}

std::int32_t request(const TopKPositionsShape& shape, const Step& step, std::int64_t token) {
  const auto own = static_cast<std::int32_t>(token < step.live ? token / shape.queries : 0);
  if (!shape.out_of_range || step.fill != Fill::adversarial) return own;
  const auto end = static_cast<std::int32_t>(shape.blocks.requests);
  const std::int32_t edges[] = {own, own, own, -1, end, kMostPosition, -kMostPosition - 1};
  return edges[random_bits(mix(step.seed, 2), token) % std::size(edges)];
}

}  // namespace

TopKPositionsShape::TopKPositionsShape(const Row& row, bool also_out_of_range)
    : tokens(row.integer("tokens")),
      topk(row.integer("topk")),
      queries(row.integer("queries")),
      row_gap(row.integer("row_gap")),
      out_of_range(also_out_of_range) {
  blocks.requests = (tokens + queries - 1) / queries;
  blocks.columns = row.integer("blocks");
  blocks.gap = row.integer("table_gap");
  blocks.block_size = row.integer("block_size");
  require_int32_slots(blocks, row.where);
}

reference::TopKPositions TopKPositionsShape::reference(const TensorSet& tensors) const {
  reference::TopKPositions input;
  input.topk_indices = tensors.at("topk_indices").data<std::int32_t>();
  input.tokens = tokens;
  input.topk = topk;
  input.row_stride = tensors.at("topk_indices").spec().strides.front();
  input.token_to_req = tensors.at("token_to_req").data<std::int32_t>();
  input.is_valid_token = tensors.at("is_valid_token").data<std::uint8_t>();
  input.block_table = blocks.reference(tensors);
  return input;
}

std::vector<Parameter> topk_positions_parameters() {
  return {{"tokens", 5, 0, 65536, "padded decode tokens"},
          {"topk", 64, 1, 65536, "positions per token"},
          {"queries", 1, 1, 64, "tokens of a request"},
          {"row_gap", 0, 0, 65536, "elements between the positions of two tokens"},
          {"blocks", 16, 1, 1 << 20, "blocks per request"},
          {"table_gap", 0, 0, 65536, "elements between two rows of the block table"},
          {"block_size", 64, 1, 65536, "positions per block"}};
}

void fill_topk_positions(const TopKPositionsShape& shape, const Step& step, TensorSet& tensors) {
  const std::vector<std::int64_t> counts = live_lengths(step, shape.tokens, step.live, shape.topk);
  HostTensor& indices = tensors.at("topk_indices");
  for (std::int64_t token = 0; token < step.live; ++token) {
    auto* to = indices.row<std::int32_t>(token);
    for (std::int64_t j = 0; j < shape.topk; ++j) {
      const std::int64_t place = token * shape.topk + j;
      to[j] = j < counts[token] ? position(shape, step, place) : negative_index(step, place);
    }
  }
  fill_dead_integers(indices, step.live, shape.tokens, step.dead_rows);
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    tensors.at("token_to_req").data<std::int32_t>()[token] = request(shape, step, token);
    tensors.at("is_valid_token").data<std::uint8_t>()[token] =
        is_batch_token(step, token, step.live);
  }
  const std::int64_t live_requests = (step.live + shape.queries - 1) / shape.queries;
  fill_block_table(shape.blocks, step, live_requests, tensors);
}

}  // namespace plumb::cases
