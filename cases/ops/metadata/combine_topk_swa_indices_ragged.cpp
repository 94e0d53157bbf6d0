// SPDX-License-Identifier: Apache-2.0
//
// Cases of combine_topk_swa_indices_ragged. Capacity and live count are requests of a chunk; dead
// ones have no query tokens, and the tokens behind the last are padding.
#include "reference/metadata/combine_topk_swa_indices_ragged.h"

#include <algorithm>

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using reference::ChunkLists;

class CombineProblem : public Problem {
 public:
  explicit CombineProblem(const Row& row)
      : ratio_(row.integer("ratio")),
        top_k_(row.integer("top_k")),
        window_(row.integer("window")),
        width_(row.integer("topk_width")),
        gap_(row.integer("row_gap")) {
    if (width_ < 0) width_ = top_k_;
    queries_.requests = row.integer("requests");
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.first = row.integer("first");
    queries_.ragged = true;
    queries_.given_tokens = row.integer("tokens");
    queries_.edges = {window_ - 1,     window_,
                      window_ + 1,     ratio_ * top_k_ - 1,
                      ratio_ * top_k_, ratio_ * (top_k_ + 1),
                      ratio_ - 1,      window_ + queries_.queries - 1};
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
    const std::int64_t batched = row.integer("batched_tokens");
    compressed_rows_ = top_k_ == 0 ? 0 : (queries_.context + ratio_ - 1) / ratio_;
    rows_per_request_ = compressed_rows_ + window_ + std::max(batched, queries_.queries);
  }

  std::int64_t capacity() const override { return queries_.requests; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    queries_.add(tensors);
    tensors.add(column("gather_lens", queries_.requests));
    tensors.add(table("topk_indices", tokens(), width_, gap_));
    add_persistent(tensors, column("flat", tokens() * (top_k_ + window_)));
    tensors.add(as_output(column("indptr", tokens() + 1)));
    tensors.add(as_output(column("lens", tokens())));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_queries(queries_, step, tensors);
    const reference::QueryLayout layout = queries_.reference(tensors);
    auto* gather_lens = tensors.at("gather_lens").data<std::int32_t>();
    for (std::int64_t request = 0; request < layout.requests; ++request) {
      gather_lens[request] = static_cast<std::int32_t>(reference::prefill_gather_len(
          layout.seq_lens[request], layout.query_len(request), window_));
    }
    HostTensor& topk = tensors.at("topk_indices");
    const auto queries = query_tokens(layout);
    for (std::int64_t token = 0; token < std::ssize(queries); ++token) {
      fill_states(step, token, (queries[token].position + 1) / ratio_,
                  topk.row<std::int32_t>(token));
    }
    fill_dead_integers(topk, std::ssize(queries), tokens(), step.dead_rows);
    fill_before(tensors.at("flat_before"), step.seed);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_combine_topk_swa_indices_ragged_params params{};
    params.topk_indices = tensors.get<std::int32_t>("topk_indices");
    params.query_start_loc = tensors.get<std::int32_t>("query_start_loc");
    params.seq_lens = tensors.get<std::int32_t>("seq_lens");
    params.gather_lens = tensors.get<std::int32_t>("gather_lens");
    params.flat = tensors.get<std::int32_t>("flat");
    params.indptr = tensors.get<std::int32_t>("indptr");
    params.lens = tensors.get<std::int32_t>("lens");
    params.tokens = tokens();
    params.requests = queries_.requests;
    params.topk_width = width_;
    params.topk_row_stride = width_ + gap_;
    params.top_k = top_k_;
    params.ratio = ratio_;
    params.window = window_;
    params.rows_per_request = rows_per_request_;
    params.compressed_rows = compressed_rows_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    const auto expected = combine_topk_swa_indices_ragged(reference_input(tensors));
    return {judge_exact(tensors.at("lens"), expected.lens, {}),
            judge_exact(tensors.at("indptr"), expected.indptr, {}),
            judge_ragged(tensors.at("flat"), front_over(expected.flat, tensors.at("flat_before")),
                         expected.indptr, "tokens")};
  }

  double cost() const override {
    return indptr_cost(tokens()) + row_blocks_cost(tokens(), top_k_ + window_);
  }

 private:
  std::int64_t tokens() const { return queries_.tokens(); }

  // Top-k of `states` compressed states: all of them while they fit. What is behind has no meaning.
  void fill_states(const Step& step, std::int64_t token, std::int64_t states,
                   std::int32_t* to) const {
    for (std::int64_t j = 0; j < width_; ++j) {
      const std::uint64_t bits = random_bits(mix(step.seed, 1), token * width_ + j);
      const auto any = static_cast<std::int64_t>(bits >> 33);
      std::int64_t state = step.fill == Fill::exact ? j : any % std::max<std::int64_t>(states, 1);
      if (j >= std::min(states, top_k_)) state = step.fill == Fill::real ? -1 : any;
      const bool hole = step.fill == Fill::adversarial && bits % 4 == 0;
      to[j] = static_cast<std::int32_t>(hole ? -1 : state);
    }
  }

  ChunkLists reference_input(const TensorSet& tensors) const {
    ChunkLists input;
    input.queries = queries_.reference(tensors);
    input.gather_lens = tensors.at("gather_lens").data<std::int32_t>();
    input.topk_indices = tensors.at("topk_indices").data<std::int32_t>();
    input.tokens = tokens();
    input.topk_width = width_;
    input.topk_row_stride = width_ + gap_;
    input.top_k = top_k_;
    input.ratio = ratio_;
    input.window = window_;
    input.rows_per_request = rows_per_request_;
    input.compressed_rows = compressed_rows_;
    return input;
  }

  std::int64_t ratio_, top_k_, window_, width_, gap_;
  std::int64_t compressed_rows_ = 0, rows_per_request_ = 0;
  QueryShape queries_;
};

}  // namespace

OpDefinition define_combine_topk_swa_indices_ragged() {
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
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<CombineProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
