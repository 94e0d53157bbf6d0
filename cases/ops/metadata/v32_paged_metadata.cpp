// SPDX-License-Identifier: Apache-2.0
//
// Cases of v32_paged_metadata. The batch has live and padded requests. The extents of the step
// before are chosen independently of this step: that step may have been larger, smaller or as
// large.
#include "reference/metadata/v32_paged_metadata.h"

#include <plumb/ops/metadata.h>

#include <algorithm>

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace v32_paged_metadata_cases {

using reference::PagedBuffers;

using P = plumb_v32_paged_metadata_params;

const ContractChoice kExtent{
    "extent",
    {"full_fill", "n_topk", "entries"},
    "what is cleared: all, or what the step before reached beyond this one, "
    "in topk entries a token or in entries that tokens own"};

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests), topk = t.scalar("topk", &P::topk);
  t.given(parameter("queries"), limit(&EngineLimits::query_tokens, "query tokens"));
  t.given(parameter("context"), limit(&EngineLimits::positions, "positions"));
  const Formula tokens = t.scalar("max_tokens", &P::max_tokens,
                                  requests * parameter("queries") + parameter("more_tokens"));
  t.choice("extent", &P::extent, kExtent);
  add_queries(t, requests);
  t.in_place("req_id_per_token", &P::req_id_per_token, {tokens, 1}, "request of each token");
  t.in_place("paged_kv_indices", &P::paged_kv_indices, {tokens * topk, 1}, "slots");
  t.in_place("extents", &P::extents, {2, 1}, "tokens and entries of the latest step");
  t.output("paged_kv_indptr", &P::paged_kv_indptr, {tokens + 1, 1}, "first entry of each token");
  return requests;
}

class V32PagedMetadataProblem final : public TableProblem<P> {
 public:
  V32PagedMetadataProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {
    queries_.requests = p_.requests;
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.ragged = true;
    queries_.dummies = true;
    queries_.edges = {p_.topk - 1, p_.topk, p_.topk + 1};
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_queries(queries_, step, tensors);
    fill_before(tensors.at("req_id_per_token_before"), step.seed);
    fill_before(tensors.at("paged_kv_indices_before"), step.seed);
    PagedBuffers now = before(tensors);
    now.extents = {0, 0};
    v32_paged_metadata(queries_.reference(tensors), p_.topk, cleared(), now);
    const std::int64_t most[] = {p_.max_tokens, p_.max_tokens * p_.topk};
    for (int i = 0; i < 2; ++i) {
      tensors.at("extents_before").data<std::int32_t>()[i] =
          static_cast<std::int32_t>(extent_before(step, i, now.extents[i], most[i]));
    }
  }

  Expectations expect(const Step& step, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    PagedBuffers expected = before(tensors);
    v32_paged_metadata(queries_.reference(tensors), p_.topk, cleared(), expected);
    const HostTensor& extents = tensors.at("extents");
    return {expect_exact(tensors.at("req_id_per_token"), expected.req_id_per_token, {}),
            expect_exact(tensors.at("paged_kv_indptr"), expected.paged_kv_indptr, {}),
            expect_ragged(tensors.at("paged_kv_indices"), expected.paged_kv_indices,
                          expected.paged_kv_indptr, "tokens"),
            expect_exact(extents, expected.extents, promised_rows(step, extents.spec()))};
  }

  // A step that clears everything does not use extents, so that they are not promised.
  RowMask promised_rows(const Step&, const TensorSpec& spec) const override {
    const bool free = spec.name == "extents" && p_.extent == PLUMB_EXTENT_FULL_FILL;
    return free ? RowMask(2, false) : RowMask{};
  }

  double cost() const override {
    return indptr_cost(p_.max_tokens) + row_blocks_cost(1, p_.max_tokens * p_.topk);
  }

 private:
  reference::ClearedExtent cleared() const {
    return static_cast<reference::ClearedExtent>(p_.extent);
  }

  static PagedBuffers before(const TensorSet& tensors) {
    return {integers_of(tensors.at("req_id_per_token_before")),
            {},
            integers_of(tensors.at("paged_kv_indices_before")),
            integers_of(tensors.at("extents_before"))};
  }

  // Exact fill: the step before filled the whole buffers. Real: any extent. Adversarial: the extent
  // of this step, or one more or less.
  static std::int64_t extent_before(const Step& step, int which, std::int64_t now,
                                    std::int64_t most) {
    const std::uint64_t seed = mix(step.seed, 50 + static_cast<std::uint64_t>(which));
    if (step.fill == Fill::exact) return most;
    if (step.fill == Fill::real) return integer(seed, 0, 0, most);
    return std::clamp<std::int64_t>(now + integer(seed, 0, -1, 1), 0, most);
  }

  QueryShape queries_;
};

}  // namespace v32_paged_metadata_cases

OpDefinition define_v32_paged_metadata() {
  using namespace v32_paged_metadata_cases;
  OpDefinition op;
  op.name = "v32_paged_metadata";
  op.summary = "V3.2 on ROCm: request ids, ranges and what a step clears of the one before";
  op.parameters = {{"requests", 4, 0, 65536, "padded requests"},
                   {"queries", 1, 1, 8192, "most query tokens of a request"},
                   {"context", 300, 1, 1 << 24, "longest sequence"},
                   {"topk", 128, 1, 65536, "most entries of a token"},
                   {"more_tokens", 2, 0, 65536, "tokens of the buffers beyond the padded batch"}};
  op.choices = {kExtent};
  op.make_problem = make_problem_of<V32PagedMetadataProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
