// SPDX-License-Identifier: Apache-2.0
//
// Cases of v32_paged_kv_indices. Capacity and live count are tokens; dead ones have empty ranges.
#include "reference/metadata/v32_paged_kv_indices.h"

#include <limits>

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

class V32PagedKvIndicesProblem : public Problem {
 public:
  explicit V32PagedKvIndicesProblem(const Row& row)
      : tokens_(row.integer("tokens")),
        topk_(row.integer("topk")),
        queries_(row.integer("queries")),
        gap_(row.integer("row_gap")) {
    blocks_.requests = (tokens_ + queries_ - 1) / queries_;
    blocks_.columns = row.integer("blocks");
    blocks_.gap = row.integer("table_gap");
    blocks_.block_size = row.integer("page");
    if (topk_ % 128 != 0) throw BadRow(row.where + ": topk has to be a multiple of 128");
    if (blocks_.block_size != 1 && blocks_.block_size != 64) {
      throw BadRow(row.where + ": page has to be 1 or 64");
    }
  }

  std::int64_t capacity() const override { return tokens_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(table("topk_indices", tokens_, topk_, gap_));
    tensors.add(column("req_id_per_token", tokens_));
    tensors.add(blocks_.spec());
    tensors.add(column("paged_kv_indptr", tokens_ + 1));
    add_persistent(tensors, column("paged_kv_indices", tokens_ * topk_));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const std::vector<std::int64_t> lengths = live_lengths(step, tokens_, step.live, topk_);
    store_integers(reference::prefix_sums(lengths), tensors.at("paged_kv_indptr"));
    HostTensor& indices = tensors.at("topk_indices");
    for (std::int64_t token = 0; token < tokens_; ++token) {
      const bool live = token < step.live;
      tensors.at("req_id_per_token").data<std::int32_t>()[token] =
          static_cast<std::int32_t>(live ? token / queries_ : 0);
      if (live) fill_chosen(step, token, lengths[token], indices.row<std::int32_t>(token));
    }
    fill_dead_integers(indices, step.live, tokens_, step.dead_rows);
    fill_block_table(blocks_, step, (step.live + queries_ - 1) / queries_, tensors);
    fill_before(tensors.at("paged_kv_indices_before"), step.seed);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_v32_paged_kv_indices_params params{};
    params.topk_indices = tensors.get<std::int32_t>("topk_indices");
    params.req_id_per_token = tensors.get<std::int32_t>("req_id_per_token");
    params.block_table = tensors.get<std::int32_t>("block_table");
    params.paged_kv_indptr = tensors.get<std::int32_t>("paged_kv_indptr");
    params.paged_kv_indices = tensors.get<std::int32_t>("paged_kv_indices");
    params.tokens = tokens_;
    params.topk = topk_;
    params.blocks_per_request = blocks_.columns;
    params.topk_row_stride = topk_ + gap_;
    params.block_table_row_stride = blocks_.row_stride();
    params.page = blocks_.block_size;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    TensorReport ranges = judge_indptr(tensors.at("paged_kv_indptr"), tokens_ * topk_, topk_);
    if (!ranges.passed()) return {std::move(ranges)};
    reference::PagedTopK input;
    input.topk_indices = tensors.at("topk_indices").data<std::int32_t>();
    input.req_id_per_token = tensors.at("req_id_per_token").data<std::int32_t>();
    input.paged_kv_indptr = tensors.at("paged_kv_indptr").data<std::int32_t>();
    input.tokens = tokens_;
    input.row_stride = topk_ + gap_;
    input.block_table = blocks_.reference(tensors);
    std::vector<std::int64_t> expected = integers_of(tensors.at("paged_kv_indices_before"));
    v32_paged_kv_indices(input, expected);
    return {judge_ragged(tensors.at("paged_kv_indices"), expected,
                         integers_of(tensors.at("paged_kv_indptr")), "tokens")};
  }

  double cost() const override { return row_blocks_cost(tokens_, topk_); }
  double checked_factor() const override { return 15; }

 private:
  // Real: the indexer returned fewer than the range has room for. Behind the range, more of them.
  void fill_chosen(const Step& step, std::int64_t token, std::int64_t length,
                   std::int32_t* to) const {
    constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
    const std::int64_t covered = blocks_.positions();
    const auto end = static_cast<std::int32_t>(covered);
    const std::int64_t found = integer(mix(step.seed, 1), token, 0, length);
    for (std::int64_t j = 0; j < topk_; ++j) {
      const std::uint64_t bits = random_bits(mix(step.seed, 2), token * topk_ + j);
      const auto any = static_cast<std::int32_t>(static_cast<std::int64_t>(bits >> 33) % covered);
      const std::int32_t edges[] = {-1, end, end + 5, kMost, -kMost - 1, 0, end - 1, any};
      if (step.fill == Fill::exact) to[j] = static_cast<std::int32_t>((j + token) % covered);
      if (step.fill == Fill::real) to[j] = j < found || j >= length ? any : -1;
      if (step.fill == Fill::adversarial) to[j] = edges[bits % std::size(edges)];
    }
  }

  std::int64_t tokens_, topk_, queries_, gap_;
  BlockTableShape blocks_;
};

}  // namespace

OpDefinition define_v32_paged_kv_indices() {
  OpDefinition op;
  op.name = "v32_paged_kv_indices";
  op.summary = "V3.2 on ROCm: slots of the tokens that the indexer chose; 0 for missing ones";
  op.parameters = {{"tokens", 4, 0, 65536, "padded tokens"},
                   {"topk", 128, 128, 65536, "positions per token, a multiple of 128"},
                   {"queries", 1, 1, 64, "tokens of a request"},
                   {"blocks", 8, 1, 1 << 20, "blocks per request"},
                   {"page", 64, 1, 64, "positions per block: 1 or 64"},
                   {"table_gap", 0, 0, 65536, "elements between two rows of the block table"},
                   {"row_gap", 0, 0, 65536, "elements between the positions of two tokens"}};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<V32PagedKvIndicesProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
