// SPDX-License-Identifier: Apache-2.0
//
// Cases of v32_paged_metadata. Capacity and live count are requests. What the step before reached
// is an input of its own: it may have been larger, smaller, or as large as this one.
#include "reference/metadata/v32_paged_metadata.h"

#include <algorithm>

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using reference::PagedBuffers;

class V32PagedMetadataProblem : public Problem {
 public:
  explicit V32PagedMetadataProblem(const Row& row) : topk_(row.integer("topk")) {
    queries_.requests = row.integer("requests");
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.ragged = true;
    queries_.dummies = true;
    queries_.edges = {topk_ - 1, topk_, topk_ + 1};
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
    max_tokens_ = queries_.tokens() + row.integer("more_tokens");
  }

  std::int64_t capacity() const override { return queries_.requests; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    queries_.add(tensors);
    add_persistent(tensors, column("req_id_per_token", max_tokens_));
    add_persistent(tensors, column("paged_kv_indices", max_tokens_ * topk_));
    add_persistent(tensors, column("extents", 2));
    tensors.add(as_output(column("paged_kv_indptr", max_tokens_ + 1)));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_queries(queries_, step, tensors);
    fill_before(tensors.at("req_id_per_token_before"), step.seed);
    fill_before(tensors.at("paged_kv_indices_before"), step.seed);
    PagedBuffers now = before(tensors);
    now.extents = {0, 0};
    v32_paged_metadata(queries_.reference(tensors), topk_, now);
    const std::int64_t most[] = {max_tokens_, max_tokens_ * topk_};
    for (int i = 0; i < 2; ++i) {
      tensors.at("extents_before").data<std::int32_t>()[i] =
          static_cast<std::int32_t>(extent_before(step, i, now.extents[i], most[i]));
    }
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_v32_paged_metadata_params params{};
    params.query_start_loc = tensors.get<std::int32_t>("query_start_loc");
    params.seq_lens = tensors.get<std::int32_t>("seq_lens");
    params.req_id_per_token = tensors.get<std::int32_t>("req_id_per_token");
    params.paged_kv_indptr = tensors.get<std::int32_t>("paged_kv_indptr");
    params.paged_kv_indices = tensors.get<std::int32_t>("paged_kv_indices");
    params.extents = tensors.get<std::int32_t>("extents");
    params.max_tokens = max_tokens_;
    params.requests = queries_.requests;
    params.topk = topk_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    PagedBuffers expected = before(tensors);
    v32_paged_metadata(queries_.reference(tensors), topk_, expected);
    return {judge_exact(tensors.at("req_id_per_token"), expected.req_id_per_token, {}),
            judge_exact(tensors.at("paged_kv_indptr"), expected.paged_kv_indptr, {}),
            judge_ragged(tensors.at("paged_kv_indices"), expected.paged_kv_indices,
                         expected.paged_kv_indptr, "tokens"),
            judge_exact(tensors.at("extents"), expected.extents, {})};
  }

  double cost() const override {
    return indptr_cost(max_tokens_) + row_blocks_cost(1, max_tokens_ * topk_);
  }

 private:
  static PagedBuffers before(const TensorSet& tensors) {
    return {integers_of(tensors.at("req_id_per_token_before")),
            {},
            integers_of(tensors.at("paged_kv_indices_before")),
            integers_of(tensors.at("extents_before"))};
  }

  // Exact: the step before filled the buffers. Adversarial: it was as large as this one, or nearly.
  static std::int64_t extent_before(const Step& step, int which, std::int64_t now,
                                    std::int64_t most) {
    const std::uint64_t seed = mix(step.seed, 50 + static_cast<std::uint64_t>(which));
    if (step.fill == Fill::exact) return most;
    if (step.fill == Fill::real) return integer(seed, 0, 0, most);
    return std::clamp<std::int64_t>(now + integer(seed, 0, -1, 1), 0, most);
  }

  std::int64_t topk_, max_tokens_;
  QueryShape queries_;
};

}  // namespace

OpDefinition define_v32_paged_metadata() {
  OpDefinition op;
  op.name = "v32_paged_metadata";
  op.summary = "V3.2 on ROCm: request ids, ranges and the shrink-tail fill of a step";
  op.parameters = {{"requests", 4, 0, 65536, "padded requests"},
                   {"queries", 1, 1, 8192, "most query tokens of a request"},
                   {"context", 300, 1, 1 << 24, "longest sequence"},
                   {"topk", 128, 1, 65536, "most entries of a token"},
                   {"more_tokens", 2, 0, 65536, "tokens of the buffers beyond the padded batch"}};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<V32PagedMetadataProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
