// SPDX-License-Identifier: Apache-2.0
//
// Cases of compressed_slot_mapping. Rows of a batch are requests; padded ones have no tokens.
#include "reference/compressor/compressed_slot_mapping.h"

#include <plumb/ops/compressor.h>

#include "cases/ops/metadata/metadata_members.h"

namespace plumb::cases {

namespace compressed_slot_mapping_cases {

using P = plumb_compressed_slot_mapping_params;

const ContractChoice kOwnSlot{
    "own_slot", {"required", "ignored"}, "tokens without a slot of their own"};

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula full = requests * parameter("queries");
  const Formula tokens = t.scalar("tokens", &P::tokens, unless_negative(parameter("tokens"), full));
  const Formula buffer =
      t.scalar("buffer_tokens", &P::buffer_tokens, tokens + parameter("more_buffer_tokens"));
  const Formula ratio = t.scalar("ratio", &P::ratio), page = t.scalar("page", &P::page);
  t.choice("own_slot", &P::own_slot, kOwnSlot);
  t.given(parameter("table_gap"), 0);
  t.given(parameter("first_block"), 0);
  add_queries(t, requests);
  t.input("slot_mapping", &P::slot_mapping, {tokens, 1}, "own slots; negative: none");
  add_block_table(t, requests, div_up(parameter("context"), ratio * page));
  t.output("compressed_slots", &P::compressed_slots, {buffer, 1}, "-1: closes no state");
  return requests;
}

class CompressedSlotProblem final : public TableProblem<P> {
 public:
  CompressedSlotProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {
    queries_.requests = p_.requests;
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.ragged = row.integer("ragged") != 0;
    // Engines that ignore a token's own slot treat positions below 0 in different ways. Cases of
    // this choice have no such positions.
    queries_.dummies = p_.own_slot == PLUMB_OWN_SLOT_REQUIRED;
    queries_.given_tokens = p_.tokens;
    const std::int64_t span = p_.ratio * p_.page;  // positions of a block
    queries_.edges = {p_.ratio - 1, p_.ratio, p_.ratio + 1, span - 1, span, span + 1, 2 * span};
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
    blocks_.requests = p_.requests;
    blocks_.columns = (queries_.context + span - 1) / span;
    blocks_.gap = p_.block_table_row_stride - blocks_.columns;
    blocks_.block_size = p_.page;
    blocks_.first_block = row.integer("first_block");
    require_int32_blocks(blocks_, row.where);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_queries(queries_, step, tensors);
    HostTensor& own = tensors.at("slot_mapping");
    fill_slot_mapping(step, queries_.reference(tensors).tokens(), own);
    std::int64_t token = 0;
    for (const auto& query : query_tokens(queries_.reference(tensors), p_.tokens)) {
      if (query.position < 0)
        own.data<std::int64_t>()[token] = -1;  // before the start of the sequence
      ++token;
    }
    fill_block_table(blocks_, step, step.live, tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    reference::CompressedSlotBatch input;
    input.queries = queries_.reference(tensors);
    if (p_.own_slot == PLUMB_OWN_SLOT_REQUIRED) {
      input.slot_mapping = tensors.at("slot_mapping").data<std::int64_t>();
    }
    input.tokens = p_.tokens;
    input.buffer_tokens = p_.buffer_tokens;
    input.ratio = p_.ratio;
    input.block_table = blocks_.reference(tensors);
    return {expect_exact(tensors.at("compressed_slots"), compressed_slot_mapping(input),
                         promised(input))};
  }

  double cost() const override { return 60.0 * static_cast<double>(p_.buffer_tokens + 64); }
  double checked_factor() const override { return 16; }

 private:
  // If own slots are ignored, the result of a token with a position below 0 is unspecified.
  RowMask promised(const reference::CompressedSlotBatch& input) const {
    RowMask rows(static_cast<std::size_t>(p_.buffer_tokens), true);
    if (input.slot_mapping != nullptr) return rows;
    std::size_t token = 0;
    for (const auto& query : query_tokens(input.queries, input.tokens)) {
      rows[token++] = query.position >= 0;
    }
    return rows;
  }

  QueryShape queries_;
  BlockTableShape blocks_;
};

}  // namespace compressed_slot_mapping_cases

OpDefinition define_compressed_slot_mapping() {
  using namespace compressed_slot_mapping_cases;
  OpDefinition op;
  op.name = "compressed_slot_mapping";
  op.summary = "slots of the compressed states that the tokens of a step close";
  op.parameters = {{"requests", 4, 0, 65536, "padded requests"},
                   {"queries", 1, 1, 65536, "most query tokens of a request"},
                   {"tokens", -1, -1, 1 << 20, "of the call; -1: those of full requests"},
                   {"ragged", 0, 0, 1, "requests with fewer query tokens, also none"},
                   {"context", 1000, 1, 1 << 24, "longest sequence"},
                   {"ratio", 4, 1, 65536, "positions per state"},
                   {"page", 64, 1, 65536, "states per block"},
                   {"table_gap", 0, 0, 65536, "elements between two rows of the block table"},
                   {"first_block", 0, 0, 0x7fffffff, "added to block numbers"},
                   {"more_buffer_tokens", 2, 0, 1 << 20, "rows of the buffer behind the tokens"}};
  op.choices = {kOwnSlot};
  op.make_problem = make_problem_of<CompressedSlotProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
