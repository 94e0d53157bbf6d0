// SPDX-License-Identifier: Apache-2.0
//
// Cases of q_kv_rms_norm: two widths, two strides, two weights. What lies between rows is NaN.
#include "reference/norm/q_kv_rms_norm.h"

#include "cases/drivers/composition.h"
#include "cases/ops/norm/norm_inputs.h"

namespace plumb::cases {

namespace {

// Two calls of rms_norm on the same slices.
class QKvSequence final : public Composition {
 public:
  explicit QKvSequence(const plumb_q_kv_rms_norm_params& shape) : shape_(shape) {}

  std::vector<std::string_view> ops() const override { return {"rms_norm", "rms_norm"}; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"plain_out_q", Dtype::bf16, {shape_.tokens, shape_.q_hidden}, {}, Role::output});
    tensors.add({"plain_out_kv", Dtype::bf16, {shape_.tokens, shape_.kv_hidden}, {}, Role::output});
    return tensors;
  }

  plumb_status launch(const std::vector<plumb_op_entry>& entries, const DeviceTensors& tensors,
                      device::Stream stream) const override {
    plumb_rms_norm_params q{}, kv{};
    q.tokens = kv.tokens = shape_.tokens;
    q.x = tensors.get<std::uint16_t>("q");
    q.weight = tensors.get<std::uint16_t>("q_weight");
    q.out = tensors.get<std::uint16_t>("plain_out_q");
    q.hidden = shape_.q_hidden;
    q.x_row_stride = shape_.q_row_stride;
    const plumb_status status = launch_plain_norm(entries[0], q, stream);
    if (status != PLUMB_OK) return status;
    kv.x = tensors.get<std::uint16_t>("kv");
    kv.weight = tensors.get<std::uint16_t>("kv_weight");
    kv.out = tensors.get<std::uint16_t>("plain_out_kv");
    kv.hidden = shape_.kv_hidden;
    kv.x_row_stride = shape_.kv_row_stride;
    return launch_plain_norm(entries[1], kv, stream);
  }

 private:
  plumb_q_kv_rms_norm_params shape_;
};

class QKvRmsNormProblem final : public Problem {
 public:
  explicit QKvRmsNormProblem(const Row& row)
      : tokens_(row.integer("tokens")),
        q_hidden_(row.integer("q_hidden")),
        kv_hidden_(row.integer("kv_hidden")),
        q_stride_(q_hidden_ + row.integer("q_gap")),
        kv_stride_(kv_hidden_ + row.integer("kv_gap")) {}

  std::int64_t capacity() const override { return tokens_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"q", Dtype::bf16, {tokens_, q_hidden_}, {q_stride_, 1}});
    tensors.add({"kv", Dtype::bf16, {tokens_, kv_hidden_}, {kv_stride_, 1}});
    tensors.add({"q_weight", Dtype::bf16, {q_hidden_}, {}});
    tensors.add({"kv_weight", Dtype::bf16, {kv_hidden_}, {}});
    tensors.add({"out_q", Dtype::bf16, {tokens_, q_hidden_}, {}, Role::output});
    tensors.add({"out_kv", Dtype::bf16, {tokens_, kv_hidden_}, {}, Role::output});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("q"), step.live, mix(step.seed, 1), step);
    fill_norm_rows(tensors.at("kv"), step.live, mix(step.seed, 2), step);
    fill_norm_weight(tensors.at("q_weight"), mix(step.seed, 3), step.fill);
    fill_norm_weight(tensors.at("kv_weight"), mix(step.seed, 4), step.fill);
    paint_gaps(tensors.at("q"));
    paint_gaps(tensors.at("kv"));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_q_kv_rms_norm_params p = shape();
    p.q = tensors.get<std::uint16_t>("q");
    p.kv = tensors.get<std::uint16_t>("kv");
    p.q_weight = tensors.get<std::uint16_t>("q_weight");
    p.kv_weight = tensors.get<std::uint16_t>("kv_weight");
    p.out_q = tensors.get<std::uint16_t>("out_q");
    p.out_kv = tensors.get<std::uint16_t>("out_kv");
    p.eps = kNormEps;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    auto expected = reference::q_kv_rms_norm(
        {tensors.at("q").data<std::uint16_t>(), tensors.at("kv").data<std::uint16_t>(),
         tensors.at("q_weight").data<std::uint16_t>(),
         tensors.at("kv_weight").data<std::uint16_t>(), tokens_, q_hidden_, kv_hidden_, q_stride_,
         kv_stride_, static_cast<double>(kNormEps)},
        numerics);
    const auto judge_one = [&](std::string_view name, reference::Estimate&& estimate) {
      const HostTensor& out = tensors.at(name);
      return judge_floats(out, mark_structured(std::move(estimate), step.fill),
                          promised_rows(step, out.spec()), groups_of(tokens_, 1, "token"));
    };
    return {judge_one("out_q", std::move(expected.q)), judge_one("out_kv", std::move(expected.kv))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(tokens_, step.live, step.dead_rows);
  }

  std::unique_ptr<Composition> composition() const override {
    return std::make_unique<QKvSequence>(shape());
  }

  double cost() const override {
    return norm_cost(tokens_, q_hidden_) + norm_cost(tokens_, kv_hidden_);
  }
  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), tokens_, q_hidden_ + kv_hidden_);
  }
  double checked_factor() const override { return 4; }  // narrow rows: mostly shuffles

 private:
  plumb_q_kv_rms_norm_params shape() const {
    plumb_q_kv_rms_norm_params p{};
    p.tokens = tokens_;
    p.q_hidden = q_hidden_;
    p.kv_hidden = kv_hidden_;
    p.q_row_stride = q_stride_;
    p.kv_row_stride = kv_stride_;
    return p;
  }

  std::int64_t tokens_, q_hidden_, kv_hidden_, q_stride_, kv_stride_;
};

}  // namespace

OpDefinition define_q_kv_rms_norm() {
  return {{"q_kv_rms_norm",
           "the norms of the query's and the key's latent, fused",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"q_hidden", 1536, 1, 1 << 20, "columns of q"},
            {"kv_hidden", 512, 1, 1 << 20, "columns of kv"},
            {"q_gap", 0, 0, 1 << 20, "elements between rows of q, guarded"},
            {"kv_gap", 0, 0, 1 << 20, "elements between rows of kv, guarded"}},
           {}},
          [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
            return std::make_unique<QKvRmsNormProblem>(row);
          },
          [](const Row&) { return true; },
          "tokens"};
}

}  // namespace plumb::cases
