// SPDX-License-Identifier: Apache-2.0
//
// Cases of swa_decode_metadata. Capacity and live count are requests; dead ones have no tokens, and
// the tokens behind the last have no slot.
#include "reference/metadata/swa_decode_metadata.h"

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

class SwaDecodeProblem : public Problem {
 public:
  explicit SwaDecodeProblem(const Row& row)
      : window_(row.integer("window")),
        gap_(row.integer("row_gap")),
        buffer_tokens_(row.integer("more_buffer_tokens")) {
    const std::int64_t page = row.integer("page");
    queries_.requests = row.integer("requests");
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.ragged = row.integer("ragged") != 0;
    queries_.given_tokens = row.integer("tokens");
    queries_.edges = {window_ - 1, window_,        window_ + 1,        page,
                      page + 1,    window_ + page, window_ + page + 1, 2 * window_};
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
    buffer_tokens_ += queries_.tokens();
    blocks_.requests = queries_.requests;
    blocks_.columns = (queries_.context + page - 1) / page;
    blocks_.gap = row.integer("table_gap");
    blocks_.block_size = page;
  }

  std::int64_t capacity() const override { return queries_.requests; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    queries_.add(tensors);
    tensors.add(column("slot_mapping", tokens(), Dtype::i64));
    tensors.add(blocks_.spec());
    add_persistent(tensors, table("swa_indices", buffer_tokens_, window_, gap_));
    add_persistent(tensors, column("swa_lens", buffer_tokens_));
    add_persistent(tensors, column("token_to_req", buffer_tokens_));
    tensors.add(as_output(column("is_valid_token", tokens(), Dtype::u8)));
    tensors.add(as_output(column("gather_lens", queries_.requests)));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_queries(queries_, step, tensors);
    fill_slot_mapping(step, queries_.reference(tensors).tokens(), tensors.at("slot_mapping"));
    fill_block_table(blocks_, step, step.live, tensors);
    for (const std::string name : {"swa_indices", "swa_lens", "token_to_req"}) {
      fill_before(tensors.at(name + "_before"), step.seed);
    }
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_swa_decode_metadata_params params{};
    params.query_start_loc = tensors.get<std::int32_t>("query_start_loc");
    params.seq_lens = tensors.get<std::int32_t>("seq_lens");
    params.slot_mapping = tensors.get<std::int64_t>("slot_mapping");
    params.block_table = tensors.get<std::int32_t>("block_table");
    params.swa_indices = tensors.get<std::int32_t>("swa_indices");
    params.swa_lens = tensors.get<std::int32_t>("swa_lens");
    params.token_to_req = tensors.get<std::int32_t>("token_to_req");
    params.is_valid_token = tensors.get<std::uint8_t>("is_valid_token");
    params.gather_lens = tensors.get<std::int32_t>("gather_lens");
    params.tokens = tokens();
    params.requests = queries_.requests;
    params.window = window_;
    params.page = blocks_.block_size;
    params.block_table_row_stride = blocks_.row_stride();
    params.swa_row_stride = window_ + gap_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    reference::SwaBatch input;
    input.queries = queries_.reference(tensors);
    input.slot_mapping = tensors.at("slot_mapping").data<std::int64_t>();
    input.tokens = tokens();
    input.window = window_;
    input.block_table = blocks_.reference(tensors);
    const auto expected = swa_decode_metadata(input);
    const auto persistent = [&](const std::string& name, const std::vector<std::int64_t>& front) {
      return judge_exact(tensors.at(name), front_over(front, tensors.at(name + "_before")), {});
    };
    return {judge_exact(tensors.at("is_valid_token"), expected.is_valid_token, {}),
            persistent("token_to_req", expected.token_to_req),
            persistent("swa_lens", expected.swa_lens),
            persistent("swa_indices", expected.swa_indices),
            judge_exact(tensors.at("gather_lens"), expected.gather_lens, {})};
  }

  double cost() const override {
    return row_blocks_cost(tokens(), window_ + 64) + row_blocks_cost(1, queries_.requests);
  }
  double checked_factor() const override { return 16; }

 private:
  std::int64_t tokens() const { return queries_.tokens(); }

  std::int64_t window_, gap_, buffer_tokens_;
  QueryShape queries_;
  BlockTableShape blocks_;
};

}  // namespace

OpDefinition define_swa_decode_metadata() {
  OpDefinition op;
  op.name = "swa_decode_metadata";
  op.summary = "sliding-window slots of decode tokens, and which request each belongs to";
  op.parameters = {
      {"requests", 4, 0, 65536, "padded requests"},
      {"queries", 1, 1, 64, "most query tokens of a request"},
      {"tokens", -1, -1, 1 << 20, "of the call; -1: those of full requests"},
      {"ragged", 0, 0, 1, "requests with fewer query tokens, also none"},
      {"context", 1000, 1, 1 << 24, "longest sequence"},
      {"window", 128, 1, 65536, "sliding window"},
      {"page", 64, 1, 65536, "positions per block"},
      {"table_gap", 0, 0, 65536, "elements between two rows of the block table"},
      {"row_gap", 0, 0, 65536, "elements between the slots of two tokens"},
      {"more_buffer_tokens", 2, 0, 65536, "tokens of the buffers beyond the padded batch"}};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<SwaDecodeProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
