// SPDX-License-Identifier: Apache-2.0
//
// Cases of sparse_mla_prefill: capacity and live count are query rows.
#include "reference/sparse_mla/sparse_mla_prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/ops/sparse_mla/mla_judge.h"
#include "cases/ops/sparse_mla/mla_rows.h"

namespace plumb::cases {

namespace {

using reference::kMlaDim;
using reference::KvLayout;

// dims^-0.55, no power of two, and not the model's dims^-0.5.
constexpr float kSmScale512 = 0.0323520F, kSmScale576 = 0.0303227F;

class SparseMlaPrefillProblem : public Problem {
 public:
  SparseMlaPrefillProblem(MlaShape shape, bool logits) : shape_(std::move(shape)), logits_(logits) {
    add_mla_inputs(shape_, inputs_);
  }

  std::int64_t capacity() const override { return shape_.requests; }

  TensorSet make_tensors() const override {
    TensorSet tensors = inputs_;
    tensors.add({.name = "out",
                 .dtype = Dtype::bf16,
                 .shape = {shape_.requests, shape_.heads, kMlaDim},
                 .role = Role::output});
    if (!logits_) return tensors;
    for (const char* name : {"max_logits", "lse"}) {
      tensors.add({.name = name,
                   .dtype = Dtype::f32,
                   .shape = {shape_.requests, shape_.heads},
                   .role = Role::output});
    }
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_mla_inputs(shape_, step, tensors);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_sparse_mla_prefill_params params{};
    params.q = tensors.get<std::uint16_t>("q");
    params.kv = tensors.get<std::uint16_t>(shape_.main.cache_name());
    params.candidates = device_candidates(shape_, shape_.main, inputs_, tensors);
    params.attn_sink = tensors.get<float>("attn_sink");
    params.out = tensors.get<std::uint16_t>("out");
    params.max_logits = tensors.get<float>("max_logits");
    params.lse = tensors.get<float>("lse");
    params.rows = shape_.requests;
    params.heads = shape_.heads;
    params.kv_rows = shape_.main.cache.num_blocks();
    params.key_dims = shape_.key_dims();
    const std::vector<std::int64_t>& strides = inputs_.at("q").spec().strides;
    params.q_row_stride = strides[0];
    params.q_head_stride = strides[2];
    params.kv_row_stride = shape_.main.cache.block_bytes() / 2;
    params.sm_scale = shape_.sm_scale;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    return judge_mla_prefill(shape_, tensors, numerics, step.fill == Fill::exact);
  }

  bool rows_have_places() const override { return !shape_.ragged; }
  double cost() const override { return mla_cost(shape_); }
  double reference_cost() const override { return mla_reference_cost(shape_); }
  double checked_factor() const override { return 25; }
  ReferenceWork reference_work() const override { return mla_work(shape_, make_tensors()); }

 private:
  MlaShape shape_;
  bool logits_;
  TensorSet inputs_;  // layouts only
};

// Sequences a little longer than what a row attends to, one behind the other in the workspace.
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
  kv.cache.gap = shape.strided ? 24 : 0;
  kv.cache.far = row.integer("far") != 0;
  kv.cache.given_blocks = row.integer("kv_rows");
  shape.sm_scale = kv.cache.row_dims == kMlaDim ? kSmScale512 : kSmScale576;
  return shape;
}

void check(const Row& row, const MlaShape& shape) {
  check_candidates(row, shape);
  if (shape.key_dims() != kMlaDim && shape.key_dims() != reference::kV32Dim) {
    throw BadRow(fmt::format("{}: key_dims is 512 or 576", row.where));
  }
  if (shape.main.cache.far && shape.strided) {
    throw BadRow(fmt::format("{}: far rows have no gaps", row.where));
  }
}

}  // namespace

OpDefinition define_sparse_mla_prefill() {
  OpDefinition op;
  op.name = "sparse_mla_prefill";
  op.summary = "sparse attention of prefill tokens over a workspace of dequantised rows";
  op.parameters = with_candidate_parameters(
      {{"rows", 4, 0, 1 << 16, "query rows"},
       {"width", 128, 1, 1 << 20, "most candidates of a row"},
       {"key_dims", 512, 512, 576, "512 (V4) or 576 (V3.2); values are the first 512"},
       {"kv_rows", 0, 0, 1 << 30, "of the workspace; 0: what the tokens need"},
       {"logits", 1, 0, 1, "0: neither max_logits nor lse is asked for"}});
  op.word_parameters = with_candidate_words({});
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    MlaShape shape = shape_of(row);
    check(row, shape);
    return std::make_unique<SparseMlaPrefillProblem>(std::move(shape), row.integer("logits") != 0);
  };
  op.row_count = "rows";
  return op;
}

}  // namespace plumb::cases
