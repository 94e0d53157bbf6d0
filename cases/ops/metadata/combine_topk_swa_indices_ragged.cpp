// SPDX-License-Identifier: Apache-2.0
//
// Cases of combine_topk_swa_indices_ragged. The batch has live and padded requests of a prefill
// chunk. Padded requests have no query tokens, and all tokens behind those of live requests are
// padding.
#include "reference/metadata/combine_topk_swa_indices_ragged.h"

#include <plumb/ops/metadata.h>

#include <algorithm>

#include "cases/ops/metadata/chosen_states.h"
#include "cases/ops/metadata/metadata_members.h"

namespace plumb::cases {

namespace combine_topk_swa_indices_ragged_cases {

using reference::ChunkLists;

using P = plumb_combine_topk_swa_indices_ragged_params;

const ContractChoice kMinusOne{"minus_one",
                               {"shifted", "keep"},
                               "a top-k entry of -1: the row in front of the request's own, or -1"};
const ContractChoice kTailEntries{
    "tail", {"untouched", "minus_one"}, "entries behind the last token's"};
const ContractChoice kMissing{
    "missing", {"untouched", "minus_one"}, "entries for which the top-k table has no column"};

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests), queries = parameter("queries");
  t.given(queries, 1);
  const Formula tokens =
      t.scalar("tokens", &P::tokens, unless_negative(parameter("tokens"), requests * queries));
  const Formula ratio = t.scalar("ratio", &P::ratio), top_k = t.scalar("top_k", &P::top_k);
  const Formula window = t.scalar("window", &P::window);
  const Formula width =
      t.scalar("topk_width", &P::topk_width, unless_negative(parameter("topk_width"), top_k));
  const Formula stride = t.scalar("topk_indices_row_stride", &P::topk_indices_row_stride,
                                  width + parameter("row_gap"));
  const Formula states = t.scalar("compressed_rows", &P::compressed_rows,
                                  !!top_k * div_up(parameter("context"), ratio));
  t.scalar("rows_per_request", &P::rows_per_request,
           states + window + greatest(parameter("batched_tokens"), queries));
  t.choice("minus_one", &P::minus_one, kMinusOne);
  t.choice("tail", &P::tail, kTailEntries);
  t.choice("missing", &P::missing, kMissing);
  add_queries(t, requests);
  t.input("gather_lens", &P::gather_lens, {requests, 1}, "tokens in the workspace");
  t.input("topk_indices", &P::topk_indices, {tokens, width}, "compressed positions")
      .strides({stride, 1});
  t.in_place("flat", &P::flat, {tokens * (top_k + window), 1}, "rows of the workspace");
  t.output("indptr", &P::indptr, {tokens + 1, 1}, "first entry of each token");
  t.output("lens", &P::lens, {tokens, 1}, "entries of each token");
  return requests;
}

class CombineProblem final : public TableProblem<P> {
 public:
  CombineProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {
    queries_.requests = p_.requests;
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.first = row.integer("first");
    queries_.ragged = true;
    queries_.given_tokens = p_.tokens;
    queries_.edges = {p_.window - 1,       p_.window,
                      p_.window + 1,       p_.ratio * p_.top_k - 1,
                      p_.ratio * p_.top_k, p_.ratio * (p_.top_k + 1),
                      p_.ratio - 1,        p_.window + queries_.queries - 1};
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_queries(queries_, step, tensors);
    const reference::QueryLayout layout = queries_.reference(tensors);
    auto* gather_lens = tensors.at("gather_lens").data<std::int32_t>();
    for (std::int64_t request = 0; request < layout.requests; ++request) {
      gather_lens[request] = static_cast<std::int32_t>(reference::prefill_gather_len(
          layout.seq_lens[request], layout.query_len(request), p_.window));
    }
    HostTensor& topk = tensors.at("topk_indices");
    const auto queries = query_tokens(layout, p_.tokens);
    for (std::int64_t token = 0; token < std::ssize(queries); ++token) {
      fill_chosen_states(step, token, (queries[token].position + 1) / p_.ratio, p_.top_k,
                         p_.topk_width, topk.row<std::int32_t>(token));
    }
    fill_dead_integers(topk, std::ssize(queries), p_.tokens, step.dead_rows);
    fill_before(tensors.at("flat_before"), step.seed);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const auto expected = combine_topk_swa_indices_ragged(reference_input(tensors));
    return {expect_exact(tensors.at("lens"), expected.lens, {}),
            expect_exact(tensors.at("indptr"), expected.indptr, {}),
            expect_ragged(tensors.at("flat"), flat(expected.flat, tensors.at("flat_before")),
                          expected.indptr, "token")};
  }

  double cost() const override {
    return indptr_cost(p_.tokens) + row_blocks_cost(p_.tokens, p_.top_k + p_.window);
  }

 private:
  std::vector<std::int64_t> flat(const std::vector<std::int64_t>& entries,
                                 const HostTensor& before) const {
    std::vector<std::int64_t> all = integers_of(before);
    const auto end = all.begin() + std::ssize(entries);
    if (p_.tail == PLUMB_NO_VALUE_MINUS_ONE) std::fill(end, all.end(), -1);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] != reference::kMissingState)
        all[i] = entries[i];
      else if (p_.missing == PLUMB_NO_VALUE_MINUS_ONE)
        all[i] = -1;
    }
    return all;
  }

  ChunkLists reference_input(const TensorSet& tensors) const {
    ChunkLists input;
    input.queries = queries_.reference(tensors);
    input.gather_lens = tensors.at("gather_lens").data<std::int32_t>();
    input.topk_indices = tensors.at("topk_indices").data<std::int32_t>();
    input.tokens = p_.tokens;
    input.topk_width = p_.topk_width;
    input.topk_indices_row_stride = p_.topk_indices_row_stride;
    input.top_k = p_.top_k;
    input.ratio = p_.ratio;
    input.window = p_.window;
    input.rows_per_request = p_.rows_per_request;
    input.compressed_rows = p_.compressed_rows;
    input.shift_minus_one = p_.minus_one == PLUMB_MINUS_ONE_SHIFTED;
    return input;
  }

  QueryShape queries_;
};

}  // namespace combine_topk_swa_indices_ragged_cases

OpDefinition define_combine_topk_swa_indices_ragged() {
  using namespace combine_topk_swa_indices_ragged_cases;
  OpDefinition op;
  op.name = "combine_topk_swa_indices_ragged";
  op.summary = "workspace rows that each prefill token attends: compressed states, then its window";
  op.parameters = {{"requests", 3, 0, 4096, "padded requests of the chunk"},
                   {"queries", 3, 1, 8192, "most query tokens of a request"},
                   {"tokens", -1, -1, 1 << 20, "of the call; -1: those of full requests"},
                   {"context", 200, 1, 1 << 24, "longest sequence"},
                   {"first", 0, 0, 1 << 24, "query_start_loc of the chunk's first request"},
                   {"ratio", 4, 1, 65536, "tokens per compressed state"},
                   {"top_k", 16, 0, 65536, "most states of a token; 0: window only"},
                   {"topk_width", -1, -1, 65536, "columns of the top-k table; -1: top_k"},
                   {"row_gap", 0, 0, 65536, "elements between two rows of the top-k table"},
                   {"window", 128, 1, 65536, "sliding window"},
                   {"batched_tokens", 64, 0, 1 << 20, "most query tokens of a batch"}};
  op.choices = {kMinusOne, kTailEntries, kMissing};
  op.make_problem = make_problem_of<CombineProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
