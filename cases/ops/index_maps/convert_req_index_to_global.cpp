// SPDX-License-Identifier: Apache-2.0
//
// Cases of convert_req_index_to_global. The batch has live and padded tokens. The adversarial fill
// has positions around the end of the block table and around the turns of ranks.
#include "reference/index_maps/convert_req_index_to_global.h"

#include <fmt/format.h>
#include <plumb/ops/metadata.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace convert_req_index_to_global_cases {

enum ConverterSalt : std::uint64_t { kPositions = 1, kFound, kPrefills, kStarts };

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

using P = plumb_convert_req_index_to_global_params;

// vLLM's kernel finds places of valid entries with a counter per row. Tiles of a row race for it,
// unless one tile has the whole row.
const ContractChoice kCompaction{
    "compaction",
    {"none", "left", "any_order"},
    "entries stay in their columns, or valid ones come first: in their order, or in any",
    {{"left", "any_order", "the columns' order is one of any"}}};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), topk = t.scalar("topk", &P::topk);
  t.given(parameter("queries"), 1);
  t.given(parameter("counts"), t.has("valid_counts", &P::valid_counts));
  const Formula blocks =
      t.scalar("blocks_per_request", &P::blocks_per_request, parameter("blocks"));
  const Formula block = t.scalar("block_size", &P::block_size);
  t.scalar("block_stride_rows", &P::block_stride_rows, block + parameter("block_gap"));
  t.scalar("dcp_size", &P::dcp_size);
  t.scalar("dcp_rank", &P::dcp_rank);
  t.scalar("dcp_interleave", &P::dcp_interleave);
  const Formula prefills = t.scalar("prefills", &P::prefills);
  t.choice("compaction", &P::compaction, kCompaction);
  const Formula stride = t.scalar("token_indices_row_stride", &P::token_indices_row_stride,
                                  topk + parameter("row_gap"));
  t.input("token_indices", &P::token_indices, {tokens, topk}, "positions; negative: none")
      .strides({stride, 1});
  t.input("req_id", &P::req_id, {tokens, 1}, "request of each token");
  t.input("prefill_request_id", &P::prefill_request_id, {tokens, 1}, "-1: a decode token")
      .when(prefills);
  t.input("workspace_starts", &P::workspace_starts, {prefills, 1}, "first row of each prefill")
      .when(prefills);
  add_block_table(t, requests_of_tokens(tokens, div_up(tokens, parameter("queries"))), blocks);
  t.output("global_indices", &P::global_indices, {tokens, topk}, "rows; -1: none");
  t.strides({{"global_indices_row_stride", &P::global_indices_row_stride}});
  t.output("valid_counts", &P::valid_counts, {tokens, 1}, "rows of each token")
      .when(parameter("counts"));
  return tokens;
}

class ConverterProblem final : public TableProblem<P> {
 public:
  ConverterProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        queries_(row.integer("queries")),
        blocks_{.requests = (p_.tokens + queries_ - 1) / queries_,
                .columns = p_.blocks_per_request,
                .gap = p_.block_table_row_stride - p_.blocks_per_request,
                .block_size = p_.block_stride_rows} {
    require_int32_slots(blocks_, row.where);
    if (covered() > kMost / 2) throw BadRow(row.where + ": positions do not fit into int32");
    if (p_.dcp_rank >= p_.dcp_size) throw BadRow(row.where + ": dcp_rank is not below dcp_size");
    if (p_.block_size % p_.dcp_interleave != 0) {
      throw BadRow(row.where + ": dcp_interleave has to divide block_size");
    }
    if (p_.prefills > 0 && p_.dcp_size > 1) {
      throw BadRow(row.where + ": a workspace has the positions of all ranks");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& positions = tensors.at("token_indices");
    auto* requests = tensors.at("req_id").data<std::int32_t>();
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      const bool live = token < step.live;
      requests[token] = static_cast<std::int32_t>(live ? token / queries_ : 0);
      if (live) fill_positions(step, token, positions.row<std::int32_t>(token));
    }
    fill_dead_integers(positions, step.live, p_.tokens, step.dead_rows);
    fill_block_table(blocks_, step, (step.live + queries_ - 1) / queries_, tensors);
    if (p_.prefills > 0) fill_prefills(step, tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const bool to_left = p_.compaction != PLUMB_VALID_IN_PLACE;
    auto expected = convert_req_index_to_global(reference_input(tensors), to_left);
    const HostTensor& stored = tensors.at("global_indices");
    if (p_.compaction == PLUMB_VALID_ANY_ORDER) {
      expected.indices = in_order_of(stored, expected);
    }
    Expectations expectations{expect_exact(stored, std::move(expected.indices), {})};
    if (tensors.contains("valid_counts")) {
      expectations.push_back(
          expect_exact(tensors.at("valid_counts"), std::move(expected.counts), {}));
    }
    return expectations;
  }

  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics&) const override {
    if (spec.name != "global_indices" || p_.compaction != PLUMB_VALID_ANY_ORDER) {
      return std::nullopt;
    }
    HostTensor sorted = tensors.at(spec.name);
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      auto* row = sorted.row<std::int32_t>(token);
      std::sort(row, std::find(row, row + p_.topk, -1));
    }
    return sorted;
  }

  // Two sums over a wave for every 32 columns.
  double cost() const override {
    const auto lanes = static_cast<double>(p_.tokens * ((p_.topk + 31) / 32 * 32));
    return lanes * 11 * kShuffleCost;
  }
  double checked_factor() const override { return 1.5; }

 private:
  // Number of positions of a request that the block tables of all ranks cover.
  std::int64_t covered() const { return p_.blocks_per_request * p_.block_size * p_.dcp_size; }

  // Real fill: the indexer found fewer positions than there are columns, and the rest is -1.
  void fill_positions(const Step& step, std::int64_t token, std::int32_t* to) const {
    const std::int64_t end = covered(), turn = p_.dcp_interleave;
    const std::int64_t found = integer(mix(step.seed, kFound), token, 0, p_.topk);
    for (std::int64_t j = 0; j < p_.topk; ++j) {
      const std::uint64_t bits = random_bits(mix(step.seed, kPositions), token * p_.topk + j);
      const std::int64_t any = static_cast<std::int64_t>(bits >> 33) % end;
      const std::int64_t own = p_.dcp_rank * turn;  // the rank's first position
      const std::int64_t edges[] = {-1,  end, any,  end + 5, kMost,          -kMost - 1, 0,
                                    any, own, turn, end - 1, own + turn - 1, any};
      std::int64_t position = any;
      if (step.fill == Fill::exact) position = (j + token) % end;
      if (step.fill == Fill::real && j >= found) position = -1;
      if (step.fill == Fill::adversarial) position = edges[bits % std::size(edges)];
      to[j] = static_cast<std::int32_t>(position);
    }
  }

  // The first half of the live tokens decodes, or, unless the fill is exact, tokens in no order.
  void fill_prefills(const Step& step, TensorSet& tensors) const {
    auto* prefills = tensors.at("prefill_request_id").data<std::int32_t>();
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      std::int64_t prefill = token < step.live / 2 ? -1 : token % p_.prefills;
      if (step.fill != Fill::exact) {
        prefill = integer(mix(step.seed, kPrefills), token, -1, p_.prefills - 1);
      }
      if (token < step.live || step.dead_rows != DeadRows::foreign) {
        prefills[token] = static_cast<std::int32_t>(token < step.live ? prefill : -1);
      }
    }
    auto* starts = tensors.at("workspace_starts").data<std::int32_t>();
    for (std::int64_t i = 0; i < p_.prefills; ++i) {
      const std::int64_t any = integer(mix(step.seed, kStarts), i, 0, 1 << 24);
      starts[i] = static_cast<std::int32_t>(step.fill == Fill::exact ? 1000 * i : any);
    }
  }

  // The expected rows in the order in which they are stored. A row that holds others stays as
  // expected.
  std::vector<std::int64_t> in_order_of(const HostTensor& stored,
                                        const reference::GlobalIndices& expected) const {
    const std::vector<std::int64_t> found = integers_of(stored);
    std::vector<std::int64_t> indices = expected.indices;
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      const auto begin = indices.begin() + token * p_.topk;
      const auto end = begin + expected.counts[static_cast<std::size_t>(token)];
      const auto from = found.begin() + token * p_.topk;
      if (std::is_permutation(begin, end, from)) std::copy_n(from, end - begin, begin);
    }
    return indices;
  }

  reference::ChosenPositions reference_input(const TensorSet& tensors) const {
    reference::ChosenPositions input;
    input.req_id = tensors.at("req_id").data<std::int32_t>();
    input.token_indices = tensors.at("token_indices").data<std::int32_t>();
    if (p_.prefills > 0) {
      input.prefill_request_id = tensors.at("prefill_request_id").data<std::int32_t>();
      input.workspace_starts = tensors.at("workspace_starts").data<std::int32_t>();
    }
    input.tokens = p_.tokens;
    input.prefills = p_.prefills;
    input.topk = p_.topk;
    input.row_stride = p_.token_indices_row_stride;
    input.block_table = blocks_.reference(tensors);
    input.block_table.block_size = p_.block_size;
    input.block_stride_rows = p_.block_stride_rows;
    input.dcp_size = p_.dcp_size;
    input.dcp_rank = p_.dcp_rank;
    input.dcp_interleave = p_.dcp_interleave;
    return input;
  }

  std::int64_t queries_;
  BlockTableShape blocks_;  // block_size: rows of the cache from one block to the next
};

}  // namespace convert_req_index_to_global_cases

OpDefinition define_convert_req_index_to_global() {
  using namespace convert_req_index_to_global_cases;
  OpDefinition op;
  op.name = "convert_req_index_to_global";
  op.summary = "V3.2: rows of cache or workspace for the tokens that the indexer chose";
  op.parameters = {{"tokens", 4, 0, 65536, "padded tokens"},
                   {"topk", 128, 1, 65536, "positions per token"},
                   {"queries", 1, 1, 64, "tokens of a request"},
                   {"blocks", 8, 1, 1 << 20, "blocks per request"},
                   {"block_size", 64, 1, 65536, "positions per block"},
                   {"block_gap", 0, 0, 65536, "rows of the cache between two blocks"},
                   {"table_gap", 0, 0, 65536, "elements between two rows of the block table"},
                   {"row_gap", 0, 0, 65536, "elements between the positions of two tokens"},
                   {"prefills", 0, 0, 65536, "requests with a workspace; 0: all tokens decode"},
                   {"dcp_size", 1, 1, 1024, "ranks that share a request's positions"},
                   {"dcp_rank", 0, 0, 1023, "rank of this device"},
                   {"dcp_interleave", 1, 1, 65536, "positions that a rank takes at a time"},
                   {"counts", 1, 0, 1, "1: the op counts the rows of each token"},
                   kOutGap};
  op.choices = {kCompaction};
  op.make_problem = make_problem_of<ConverterProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
