// SPDX-License-Identifier: Apache-2.0
//
// Cases of c128a_decode_metadata. The batch has live and padded decode tokens. All prefill tokens
// belong to one more request, and are always live.
#include "reference/metadata/c128a_decode_metadata.h"

#include <plumb/ops/metadata.h>

#include <algorithm>

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace c128a_decode_metadata_cases {

using P = plumb_c128a_decode_metadata_params;

constexpr std::int64_t kRatio = 128;  // tokens of a compressed state

Formula members(TablePart<P>& t) {
  const Formula decode = t.scalar("decode_tokens", &P::decode_tokens);
  const Formula prefill = t.scalar("prefill_tokens", &P::prefill_tokens);
  const Formula width = t.scalar("max_compressed", &P::max_compressed);
  const Formula block_size = t.scalar("block_size", &P::block_size);
  const Formula row_stride = width + parameter("row_gap");
  const Formula decode_stride =
      t.scalar("decode_slots_row_stride", &P::decode_slots_row_stride, row_stride);
  const Formula prefill_stride =
      t.scalar("prefill_indices_row_stride", &P::prefill_indices_row_stride, row_stride);
  const Formula tokens = decode + prefill;
  const Formula buffer = buffer_rows(t, decode, "more_buffer_tokens");
  t.input("positions", &P::positions, {tokens, 1}, "of each token");
  t.input("slot_mapping", &P::slot_mapping, {tokens, 1}, "negative: no token of the batch");
  t.input("token_to_req", &P::token_to_req, {tokens, 1}, "request of each token");
  t.given(parameter("context"), width * kRatio);
  const Formula states = least(div_up(parameter("context"), kRatio), width);
  // The last request has all prefill tokens.
  const Formula requests = div_up(decode, parameter("queries")) + 1;
  add_block_table(t, requests_of_tokens(decode, requests), div_up(states, block_size));
  t.in_place("decode_slots", &P::decode_slots, {buffer, width}, "-1 behind the token's own")
      .strides({decode_stride, 1});
  t.in_place("decode_lens", &P::decode_lens, {buffer, 1}, "slots of each token");
  t.output("prefill_indices", &P::prefill_indices, {prefill, width}, "positions, not slots")
      .strides({prefill_stride, 1});
  return decode;
}

class C128aProblem final : public TableProblem<P> {
 public:
  C128aProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        queries_(row.integer("queries")),
        context_(row.integer("context")) {
    const std::int64_t states = std::min((context_ + kRatio - 1) / kRatio, p_.max_compressed);
    blocks_.requests = (p_.decode_tokens + queries_ - 1) / queries_ + 1;
    blocks_.block_size = p_.block_size;
    blocks_.columns = (states + p_.block_size - 1) / p_.block_size;
    blocks_.gap = p_.block_table_row_stride - blocks_.columns;
    require_int32_slots(blocks_, row.where);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_slot_mapping(step, step.live, tensors.at("slot_mapping"));
    auto* slots = tensors.at("slot_mapping").data<std::int64_t>();
    auto* positions = tensors.at("positions").data<std::int64_t>();
    auto* requests = tensors.at("token_to_req").data<std::int32_t>();
    for (std::int64_t token = 0; token < p_.decode_tokens + p_.prefill_tokens; ++token) {
      const bool prefill = token >= p_.decode_tokens, live = token < step.live || prefill;
      // Rows of prefill tokens are judged whether or not the token has a slot.
      if (prefill) slots[token] = token % 3 == 2 ? -1 : token;
      requests[token] = static_cast<std::int32_t>(live ? token / queries_ : 0);
      if (prefill) requests[token] = static_cast<std::int32_t>(blocks_.requests - 1);
      if (live) {
        positions[token] = position(step, token);
      } else if (step.dead_rows != DeadRows::foreign) {
        positions[token] = dead_position(step);
      }
    }
    // The blocks of the prefill request are never looked up, so that its row is filled like
    // padding.
    fill_block_table(blocks_, step, (step.live + queries_ - 1) / queries_, tensors);
    fill_before(tensors.at("decode_slots_before"), step.seed);
    fill_before(tensors.at("decode_lens_before"), step.seed);
  }

  Expectations expect(const Step& step, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    reference::C128aBatch input;
    input.positions = tensors.at("positions").data<std::int64_t>();
    input.slot_mapping = tensors.at("slot_mapping").data<std::int64_t>();
    input.token_to_req = tensors.at("token_to_req").data<std::int32_t>();
    input.decode_tokens = p_.decode_tokens;
    input.prefill_tokens = p_.prefill_tokens;
    input.max_compressed = p_.max_compressed;
    input.block_table = blocks_.reference(tensors);
    const auto expected = c128a_decode_metadata(input);
    const HostTensor& slots = tensors.at("decode_slots");
    return {
        expect_exact(tensors.at("decode_lens"),
                     front_over(expected.decode_lens, tensors.at("decode_lens_before")), {}),
        expect_exact(slots, front_over(expected.decode_slots, tensors.at("decode_slots_before")),
                     promised_rows_by_inputs(step, tensors, slots.spec())),
        expect_exact(tensors.at("prefill_indices"), expected.prefill_indices, {})};
  }

  // The slots of a token of length 0 are never read, so that they are not promised.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    if (spec.name != "decode_slots") return {};
    RowMask promised(static_cast<std::size_t>(spec.shape.front()), true);
    for (std::int64_t token = 0; token < p_.decode_tokens; ++token) {
      promised[token] = is_batch_token(step, token, step.live);
    }
    return promised;
  }

  // A recorded call has its own tokens without a slot, so that promised rows follow slot_mapping.
  RowMask promised_rows_by_inputs(const Step&, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    if (spec.name != "decode_slots") return {};
    RowMask promised(static_cast<std::size_t>(spec.shape.front()), true);
    const auto* slot_mapping = tensors.at("slot_mapping").data<std::int64_t>();
    for (std::int64_t token = 0; token < p_.decode_tokens; ++token) {
      promised[token] = slot_mapping[token] >= 0;
    }
    return promised;
  }

  double cost() const override {
    return row_blocks_cost(p_.decode_tokens + p_.prefill_tokens, p_.max_compressed);
  }
  double checked_factor() const override { return 14; }

 private:
  std::int64_t position(const Step& step, std::int64_t token) const {
    const std::int64_t last = context_ - 1;
    if (step.fill == Fill::exact) return std::max<std::int64_t>(0, last - token);
    const std::uint64_t seed = mix(step.seed, 1);
    if (step.fill == Fill::real) return integer(seed, token, 0, last);
    const std::int64_t edges[] = {0, 126, 127, 128, 254, 255, 256, last, last - 1};
    const auto turn = random_bits(seed, 0) + static_cast<std::uint64_t>(token);
    return std::clamp<std::int64_t>(edges[turn % std::size(edges)], 0, last);
  }

  // A position that an earlier step may have left in padding.
  std::int64_t dead_position(const Step& step) const {
    return step.dead_rows == DeadRows::zero ? 0 : context_ - 1;
  }

  std::int64_t queries_, context_;
  BlockTableShape blocks_;
};

}  // namespace c128a_decode_metadata_cases

OpDefinition define_c128a_decode_metadata() {
  using namespace c128a_decode_metadata_cases;
  OpDefinition op;
  op.name = "c128a_decode_metadata";
  op.summary = "C128A: slots of decode tokens' compressed states, positions for prefill tokens";
  op.parameters = {
      {"decode_tokens", 4, 0, 65536, "padded decode tokens"},
      {"prefill_tokens", 2, 0, 65536, "prefill tokens behind them"},
      {"queries", 1, 1, 64, "decode tokens of a request"},
      {"context", 16384, 1, 1 << 24, "longest sequence"},
      {"max_compressed", 128, 1, 65536, "c128a_max_compressed: columns of a row"},
      {"block_size", 2, 1, 65536, "compressed states per block"},
      {"table_gap", 0, 0, 65536, "elements between two rows of the block table"},
      {"row_gap", 0, 0, 65536, "elements between two rows of the outputs"},
      {"more_buffer_tokens", 2, 0, 65536, "rows of the buffers beyond the padded batch"}};
  op.make_problem = make_problem_of<C128aProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
