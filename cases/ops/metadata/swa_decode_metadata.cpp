// SPDX-License-Identifier: Apache-2.0
//
// Cases of swa_decode_metadata. The batch has live and padded requests. Padded requests have no
// tokens, and tokens behind those of live requests have no slot.
#include "reference/metadata/swa_decode_metadata.h"

#include <plumb/ops/metadata.h>

#include <algorithm>

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace swa_decode_metadata_cases {

using P = plumb_swa_decode_metadata_params;

const ContractChoice kInvalidRow{
    "invalid_row", {"untouched", "minus_one"}, "slots of a token without a slot of its own"};

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula full = requests * parameter("queries");
  const Formula tokens = t.scalar("tokens", &P::tokens, unless_negative(parameter("tokens"), full));
  const Formula window = t.scalar("window", &P::window), page = t.scalar("page", &P::page);
  t.choice("invalid_row", &P::invalid_row, kInvalidRow);
  const Formula stride =
      t.scalar("swa_indices_row_stride", &P::swa_indices_row_stride, window + parameter("row_gap"));
  const Formula buffer = buffer_rows(t, tokens, "more_buffer_tokens");
  t.given(parameter("table_gap"), 0);
  add_queries(t, requests);
  t.input("slot_mapping", &P::slot_mapping, {tokens, 1}, "negative: no token of the batch");
  add_block_table(t, requests, div_up(parameter("context"), page));
  t.in_place("swa_indices", &P::swa_indices, {buffer, window}, "slots; -1 behind the last")
      .strides({stride, 1});
  t.in_place("swa_lens", &P::swa_lens, {buffer, 1}, "slots of each token");
  t.in_place("token_to_req", &P::token_to_req, {buffer, 1}, "0 for padding");
  t.output("is_valid_token", &P::is_valid_token, {tokens, 1}, "0 for padding");
  t.output("gather_lens", &P::gather_lens, {requests, 1}, "tokens that a prefill has to gather");
  return requests;
}

class SwaDecodeProblem final : public TableProblem<P> {
 public:
  SwaDecodeProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {
    queries_.requests = p_.requests;
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.ragged = row.integer("ragged") != 0;
    queries_.given_tokens = p_.tokens;
    queries_.edges = {p_.window - 1, p_.window,           p_.window + 1,           p_.page,
                      p_.page + 1,   p_.window + p_.page, p_.window + p_.page + 1, 2 * p_.window};
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
    blocks_.requests = p_.requests;
    blocks_.columns = (queries_.context + p_.page - 1) / p_.page;
    blocks_.gap = p_.block_table_row_stride - blocks_.columns;
    blocks_.block_size = p_.page;
    require_int32_slots(blocks_, row.where);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_queries(queries_, step, tensors);
    fill_slot_mapping(step, queries_.reference(tensors).tokens(), tensors.at("slot_mapping"));
    fill_block_table(blocks_, step, step.live, tensors);
    for (const std::string name : {"swa_indices", "swa_lens", "token_to_req"}) {
      fill_before(tensors.at(name + "_before"), step.seed);
    }
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    reference::SwaBatch input;
    input.queries = queries_.reference(tensors);
    input.slot_mapping = tensors.at("slot_mapping").data<std::int64_t>();
    input.tokens = p_.tokens;
    input.window = p_.window;
    input.block_table = blocks_.reference(tensors);
    auto expected = swa_decode_metadata(input);
    if (p_.invalid_row == PLUMB_NO_VALUE_UNTOUCHED) keep_invalid_rows(tensors, expected);
    const auto persistent = [&](const std::string& name, const std::vector<std::int64_t>& front) {
      return expect_exact(tensors.at(name), front_over(front, tensors.at(name + "_before")), {});
    };
    return {expect_exact(tensors.at("is_valid_token"), expected.is_valid_token, {}),
            persistent("token_to_req", expected.token_to_req),
            persistent("swa_lens", expected.swa_lens),
            persistent("swa_indices", expected.swa_indices),
            expect_exact(tensors.at("gather_lens"), expected.gather_lens, {})};
  }

  double cost() const override {
    return row_blocks_cost(p_.tokens, p_.window + 64) + row_blocks_cost(1, p_.requests);
  }
  double checked_factor() const override { return 16; }

 private:
  void keep_invalid_rows(const TensorSet& tensors, reference::SwaMetadata& expected) const {
    const HostTensor& before = tensors.at("swa_indices_before");
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      if (expected.is_valid_token[token]) continue;
      const auto* row = before.row<std::int32_t>(token);
      std::copy(row, row + p_.window, expected.swa_indices.begin() + token * p_.window);
    }
  }

  QueryShape queries_;
  BlockTableShape blocks_;
};

}  // namespace swa_decode_metadata_cases

OpDefinition define_swa_decode_metadata() {
  using namespace swa_decode_metadata_cases;
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
  op.choices = {kInvalidRow};
  op.make_problem = make_problem_of<SwaDecodeProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
