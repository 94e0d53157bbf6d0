// SPDX-License-Identifier: Apache-2.0
//
// Cases of c128a_decode_metadata. Capacity and live count are decode tokens; prefill tokens, all of
// one more request, are always live.
#include "reference/metadata/c128a_decode_metadata.h"

#include <algorithm>

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

class C128aProblem : public Problem {
 public:
  explicit C128aProblem(const Row& row)
      : decode_(row.integer("decode_tokens")),
        prefill_(row.integer("prefill_tokens")),
        queries_(row.integer("queries")),
        context_(row.integer("context")),
        width_(row.integer("max_compressed")),
        gap_(row.integer("row_gap")),
        buffer_tokens_(decode_ + row.integer("more_buffer_tokens")) {
    const std::int64_t states = std::min((context_ + 127) / 128, width_);
    blocks_.requests = (decode_ + queries_ - 1) / queries_ + 1;
    blocks_.block_size = row.integer("block_size");
    blocks_.columns = (states + blocks_.block_size - 1) / blocks_.block_size;
    blocks_.gap = row.integer("table_gap");
  }

  std::int64_t capacity() const override { return decode_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(column("positions", decode_ + prefill_, Dtype::i64));
    tensors.add(column("slot_mapping", decode_ + prefill_, Dtype::i64));
    tensors.add(column("token_to_req", decode_ + prefill_));
    tensors.add(blocks_.spec());
    add_persistent(tensors, table("decode_slots", buffer_tokens_, width_, gap_));
    add_persistent(tensors, column("decode_lens", buffer_tokens_));
    tensors.add(as_output(table("prefill_indices", prefill_, width_, gap_)));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_slot_mapping(step, step.live, tensors.at("slot_mapping"));
    auto* slots = tensors.at("slot_mapping").data<std::int64_t>();
    auto* positions = tensors.at("positions").data<std::int64_t>();
    auto* requests = tensors.at("token_to_req").data<std::int32_t>();
    for (std::int64_t token = 0; token < decode_ + prefill_; ++token) {
      const bool prefill = token >= decode_, live = token < step.live || prefill;
      // Prefill rows are promised whether the token has a slot or not.
      if (prefill) slots[token] = token % 3 == 2 ? -1 : token;
      requests[token] = static_cast<std::int32_t>(live ? token / queries_ : 0);
      if (prefill) requests[token] = static_cast<std::int32_t>(blocks_.requests - 1);
      if (live) {
        positions[token] = position(step, token);
      } else if (step.dead_rows != DeadRows::foreign) {
        positions[token] = dead_position(step);
      }
    }
    // The prefill request's blocks are never looked up: its row is one more that belongs to nobody.
    fill_block_table(blocks_, step, (step.live + queries_ - 1) / queries_, tensors);
    fill_before(tensors.at("decode_slots_before"), step.seed);
    fill_before(tensors.at("decode_lens_before"), step.seed);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_c128a_decode_metadata_params params{};
    params.positions = tensors.get<std::int64_t>("positions");
    params.slot_mapping = tensors.get<std::int64_t>("slot_mapping");
    params.token_to_req = tensors.get<std::int32_t>("token_to_req");
    params.block_table = tensors.get<std::int32_t>("block_table");
    params.decode_slots = tensors.get<std::int32_t>("decode_slots");
    params.decode_lens = tensors.get<std::int32_t>("decode_lens");
    params.prefill_indices = tensors.get<std::int32_t>("prefill_indices");
    params.decode_tokens = decode_;
    params.prefill_tokens = prefill_;
    params.max_compressed = width_;
    params.block_size = blocks_.block_size;
    params.block_table_row_stride = blocks_.row_stride();
    params.decode_row_stride = params.prefill_row_stride = width_ + gap_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics&,
                                  const plumb_numerics&) const override {
    reference::C128aBatch input;
    input.positions = tensors.at("positions").data<std::int64_t>();
    input.slot_mapping = tensors.at("slot_mapping").data<std::int64_t>();
    input.token_to_req = tensors.at("token_to_req").data<std::int32_t>();
    input.decode_tokens = decode_;
    input.prefill_tokens = prefill_;
    input.max_compressed = width_;
    input.block_table = blocks_.reference(tensors);
    const auto expected = c128a_decode_metadata(input);
    const HostTensor& slots = tensors.at("decode_slots");
    return {judge_exact(tensors.at("decode_lens"),
                        front_over(expected.decode_lens, tensors.at("decode_lens_before")), {}),
            judge_exact(slots, front_over(expected.decode_slots, tensors.at("decode_slots_before")),
                        promised_rows_by_inputs(step, tensors, slots.spec())),
            judge_exact(tensors.at("prefill_indices"), expected.prefill_indices, {})};
  }

  // Nobody reads the slots of a token of length 0; what they hold is not part of the contract.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    if (spec.name != "decode_slots") return {};
    RowMask promised(static_cast<std::size_t>(buffer_tokens_), true);
    for (std::int64_t token = 0; token < decode_; ++token) {
      promised[token] = is_batch_token(step, token, step.live);
    }
    return promised;
  }

  // Tokens of other steps than those that fill() makes have holes of their own.
  RowMask promised_rows_by_inputs(const Step&, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    if (spec.name != "decode_slots") return {};
    RowMask promised(static_cast<std::size_t>(buffer_tokens_), true);
    const auto* slot_mapping = tensors.at("slot_mapping").data<std::int64_t>();
    for (std::int64_t token = 0; token < decode_; ++token) {
      promised[token] = slot_mapping[token] >= 0;
    }
    return promised;
  }

  double cost() const override { return row_blocks_cost(decode_ + prefill_, width_); }
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

  // Any position of the model: what an earlier step left there.
  std::int64_t dead_position(const Step& step) const {
    return step.dead_rows == DeadRows::zero ? 0 : context_ - 1;
  }

  std::int64_t decode_, prefill_, queries_, context_, width_, gap_, buffer_tokens_;
  BlockTableShape blocks_;
};

}  // namespace

OpDefinition define_c128a_decode_metadata() {
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
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<C128aProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
