// SPDX-License-Identifier: Apache-2.0
//
// Cases of sparse_mla_prefill. The batch has live and padded query rows.
#include "reference/sparse_mla/sparse_mla_prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/ops/sparse_mla/mla_judge.h"
#include "cases/ops/sparse_mla/mla_members.h"
#include "cases/ops/sparse_mla/mla_rows.h"
#include "cases/tables/table_problem.h"
#include "cases/tables/widened_strides.h"

namespace plumb::cases {

namespace sparse_mla_prefill_cases {

using reference::kMlaDim;
using reference::KvLayout;

// dims^-0.55: neither a power of two nor the usual dims^-0.5, which a kernel may have hard-coded.
constexpr float kSmScale512 = 0.0323520F, kSmScale576 = 0.0303227F;
constexpr std::int64_t kWorkspaceGap = 24;  // elements

float sm_scale_of(const Row& row) {
  return row.integer("key_dims") == kMlaDim ? kSmScale512 : kSmScale576;
}

// Up to four sequences, a quarter longer than what a row attends to. The workspace has their tokens
// in permuted order.
MlaShape shape_of(const Row& row) {
  MlaShape shape;
  read_candidates(row, shape);
  shape.requests = row.integer("rows");
  MlaSide& kv = shape.main;
  kv.name = "kv";
  kv.scattered = true;
  kv.width = row.integer("width");
  kv.cache.layout = KvLayout::rows;
  kv.cache.row_dims = row.integer("key_dims");
  kv.cache.page = 1;
  kv.cache.context = kv.width + kv.width / 4 + 3;
  kv.cache.sequences = std::clamp<std::int64_t>(row.launched("rows"), 1, 4);
  const std::int64_t dense = kv.cache.row_dims + (shape.strided ? kWorkspaceGap : 0);
  kv.cache.gap = widened(dense, row, "kv_row_stride") - kv.cache.row_dims;
  kv.cache.far = row.integer("far") != 0;
  kv.cache.given_blocks = row.integer("kv_rows");
  shape.sm_scale = row.real("sm_scale", sm_scale_of(row));
  return shape;
}

void check(const Row& row, const MlaShape& shape) {
  check_candidates(row, shape);
  if (shape.key_dims() != kMlaDim && shape.key_dims() != reference::kV32Dim) {
    throw BadRow(fmt::format("{}: key_dims is 512 or 576", row.where));
  }
}

using P = plumb_sparse_mla_prefill_params;

MlaCacheShape workspace_of(const Row& row) { return shape_of(row).main.cache; }

Formula members(TablePart<P>& t) {
  using C = plumb_mla_candidates;
  const Formula rows = t.scalar("rows", &P::rows), heads = t.scalar("heads", &P::heads);
  const Formula dims = t.scalar("key_dims", &P::key_dims);
  t.real("sm_scale", &P::sm_scale, sm_scale_of, "factor of the scores");
  auto candidates = t.part("candidates", &P::candidates);
  const Formula width = candidates.scalar("width", &C::width);
  const Formula strided = parameter("strided"), gap = strided * 8;
  const Formula head_stride = t.scalar("q_head_stride", &P::q_head_stride, dims + gap);
  const Formula query_stride = heads * head_stride + gap;
  const Formula row_stride = t.scalar("q_row_stride", &P::q_row_stride, query_stride + gap);
  const Formula kv_stride =
      t.scalar("kv_row_stride", &P::kv_row_stride, dims + strided * kWorkspaceGap);
  t.scalar("kv_rows", &P::kv_rows, mla_blocks("kv_rows", workspace_of, &MlaCacheShape::num_blocks));
  t.given(word_is("form", "ragged"), candidates.has("indptr", &C::indptr));
  t.input("q", &P::q, {rows, 1, heads, dims}, "queries")
      .strides({row_stride, query_stride, head_stride, 1});
  t.input("kv", &P::kv,
          {mla_blocks("kv_rows", workspace_of, &MlaCacheShape::blocks_that_exist), dims},
          "keys; values are their first 512")
      .strides({kv_stride, 1});
  add_mla_candidates(candidates, "kv", width, rows, 1);
  t.input("attn_sink", &P::attn_sink, {heads},
          "logarithm of what each head adds to the denominator")
      .when(!word_is("sinks", "none"));
  t.output("out", &P::out, {rows, heads, kMlaDim}, "the attention's output");
  t.strides({{"out_row_stride", &P::out_row_stride}, {"out_head_stride", &P::out_head_stride}});
  const Formula all = !word_is("outputs", "out");
  t.output("max_logits", &P::max_logits, {rows, heads}, "natural units").when(all);
  t.strides({{"max_logits_row_stride", &P::max_logits_row_stride}});
  t.output("lse", &P::lse, {rows, heads}, "natural logarithm").when(all);
  t.strides({{"lse_row_stride", &P::lse_row_stride}});
  return rows;
}

class SparseMlaPrefillProblem final : public TableProblem<P> {
 public:
  SparseMlaPrefillProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), shape_(shape_of(row)) {
    check(row, shape_);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_mla_inputs(shape_, step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    return expect_mla_prefill(shape_, tensors, numerics, step.fill == Fill::exact);
  }

  bool rows_have_places() const override { return !shape_.ragged; }
  double cost() const override { return mla_cost(shape_); }
  double reference_cost() const override { return mla_reference_cost(shape_); }
  double checked_factor() const override { return 25; }
  ReferenceWork reference_work() const override { return mla_work(shape_, make_tensors()); }

 private:
  void place(TensorSpec& spec) const override { place_mla_cache(shape_.main, spec); }

  MlaShape shape_;
};

}  // namespace sparse_mla_prefill_cases

OpDefinition define_sparse_mla_prefill() {
  using namespace sparse_mla_prefill_cases;
  OpDefinition op;
  op.name = "sparse_mla_prefill";
  op.summary = "sparse attention of prefill tokens over a workspace of dequantised rows";
  op.parameters = with_candidate_parameters(
      {{"rows", 4, 0, 1 << 16, "query rows"},
       {"width", 128, 1, 1 << 20, "most candidates of a row"},
       {"key_dims", 512, 512, 576, "512 (V4) or 576 (V3.2); values are the first 512"},
       {"kv_rows", 0, 0, 1 << 30, "of the workspace; 0: what the tokens need"},
       kOutGap});
  op.word_parameters = with_candidate_words({});
  op.choices = {kMlaOutputs};
  op.make_problem = make_problem_of<SparseMlaPrefillProblem>;
  op.table = &table_of<members>();
  op.row_count = "rows";
  return op;
}

}  // namespace plumb::cases
