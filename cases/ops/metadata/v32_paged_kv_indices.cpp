// SPDX-License-Identifier: Apache-2.0
//
// Cases of v32_paged_kv_indices. The batch has live and padded tokens. Padded ones have empty
// ranges.
#include "reference/metadata/v32_paged_kv_indices.h"

#include <plumb/ops/metadata.h>

#include <limits>

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace v32_paged_kv_indices_cases {

using P = plumb_v32_paged_kv_indices_params;

const ContractChoice kInvalid{
    "invalid", {"0", "minus_one"}, "slot of a position that is negative or not in the block table"};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), topk = t.scalar("topk", &P::topk);
  const Formula blocks =
      t.scalar("blocks_per_request", &P::blocks_per_request, parameter("blocks"));
  t.scalar("page", &P::page);
  t.choice("invalid", &P::invalid, kInvalid);
  const Formula stride =
      t.scalar("topk_indices_row_stride", &P::topk_indices_row_stride, topk + parameter("row_gap"));
  t.input("topk_indices", &P::topk_indices, {tokens, topk}, "positions; negative: none")
      .strides({stride, 1});
  t.input("req_id_per_token", &P::req_id_per_token, {tokens, 1}, "request of each token");
  add_block_table(t, requests_of_tokens(tokens, div_up(tokens, parameter("queries"))), blocks);
  t.input("paged_kv_indptr", &P::paged_kv_indptr, {tokens + 1, 1}, "first entry of each token");
  t.in_place("paged_kv_indices", &P::paged_kv_indices, {tokens * topk, 1}, "slots");
  return tokens;
}

class V32PagedKvIndicesProblem final : public TableProblem<P> {
 public:
  V32PagedKvIndicesProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        queries_(row.integer("queries")),
        blocks_{.requests = (p_.tokens + queries_ - 1) / queries_,
                .columns = p_.blocks_per_request,
                .gap = p_.block_table_row_stride - p_.blocks_per_request,
                .block_size = p_.page} {
    require_int32_slots(blocks_, row.where);
    if (p_.topk % 128 != 0) throw BadRow(row.where + ": topk has to be a multiple of 128");
    if (p_.page != 1 && p_.page != 64) throw BadRow(row.where + ": page has to be 1 or 64");
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const std::vector<std::int64_t> lengths = live_lengths(step, p_.tokens, step.live, p_.topk);
    store_integers(reference::prefix_sums(lengths), tensors.at("paged_kv_indptr"));
    HostTensor& indices = tensors.at("topk_indices");
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      const bool live = token < step.live;
      tensors.at("req_id_per_token").data<std::int32_t>()[token] =
          static_cast<std::int32_t>(live ? token / queries_ : 0);
      if (live) fill_chosen(step, token, lengths[token], indices.row<std::int32_t>(token));
    }
    fill_dead_integers(indices, step.live, p_.tokens, step.dead_rows);
    fill_block_table(blocks_, step, (step.live + queries_ - 1) / queries_, tensors);
    fill_before(tensors.at("paged_kv_indices_before"), step.seed);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    Expectation ranges = expect_ranges(tensors.at("paged_kv_indptr"), p_.tokens * p_.topk, p_.topk);
    if (!compare(ranges).passed()) return {std::move(ranges)};
    reference::PagedTopK input;
    input.topk_indices = tensors.at("topk_indices").data<std::int32_t>();
    input.req_id_per_token = tensors.at("req_id_per_token").data<std::int32_t>();
    input.paged_kv_indptr = tensors.at("paged_kv_indptr").data<std::int32_t>();
    input.tokens = p_.tokens;
    input.row_stride = p_.topk_indices_row_stride;
    input.block_table = blocks_.reference(tensors);
    input.missing = p_.invalid == PLUMB_INVALID_SLOT_0 ? 0 : -1;
    std::vector<std::int64_t> expected = integers_of(tensors.at("paged_kv_indices_before"));
    v32_paged_kv_indices(input, expected);
    return {expect_ragged(tensors.at("paged_kv_indices"), expected,
                          integers_of(tensors.at("paged_kv_indptr")), "token")};
  }

  double cost() const override { return row_blocks_cost(p_.tokens, p_.topk); }
  double checked_factor() const override { return 15; }

 private:
  // Real fill: the indexer found fewer positions than the range has entries, and the rest of the
  // range is -1. Behind the range there are positions again, which must not be used.
  void fill_chosen(const Step& step, std::int64_t token, std::int64_t length,
                   std::int32_t* to) const {
    constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
    const std::int64_t covered = blocks_.positions();
    const auto end = static_cast<std::int32_t>(covered);
    const std::int64_t found = integer(mix(step.seed, 1), token, 0, length);
    for (std::int64_t j = 0; j < p_.topk; ++j) {
      const std::uint64_t bits = random_bits(mix(step.seed, 2), token * p_.topk + j);
      const auto any = static_cast<std::int32_t>(static_cast<std::int64_t>(bits >> 33) % covered);
      const std::int32_t edges[] = {-1, end, end + 5, kMost, -kMost - 1, 0, end - 1, any};
      if (step.fill == Fill::exact) to[j] = static_cast<std::int32_t>((j + token) % covered);
      if (step.fill == Fill::real) to[j] = j < found || j >= length ? any : -1;
      if (step.fill == Fill::adversarial) to[j] = edges[bits % std::size(edges)];
    }
  }

  std::int64_t queries_;
  BlockTableShape blocks_;
};

}  // namespace v32_paged_kv_indices_cases

OpDefinition define_v32_paged_kv_indices() {
  using namespace v32_paged_kv_indices_cases;
  OpDefinition op;
  op.name = "v32_paged_kv_indices";
  op.summary = "V3.2 on ROCm: slots of the tokens that the indexer chose";
  op.parameters = {{"tokens", 4, 0, 65536, "padded tokens"},
                   {"topk", 128, 128, 65536, "positions per token, a multiple of 128"},
                   {"queries", 1, 1, 64, "tokens of a request"},
                   {"blocks", 8, 1, 1 << 20, "blocks per request"},
                   {"page", 64, 1, 64, "positions per block: 1 or 64"},
                   {"table_gap", 0, 0, 65536, "elements between two rows of the block table"},
                   {"row_gap", 0, 0, 65536, "elements between the positions of two tokens"}};
  op.choices = {kInvalid};
  op.make_problem = make_problem_of<V32PagedKvIndicesProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
