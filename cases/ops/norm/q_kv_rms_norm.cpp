// SPDX-License-Identifier: Apache-2.0
//
// Cases of q_kv_rms_norm: q and kv each have their own width, stride and weight. Gaps between rows
// hold NaN.
#include "reference/norm/q_kv_rms_norm.h"

#include "cases/drivers/composition.h"
#include "cases/ops/norm/norm_inputs.h"

namespace plumb::cases {

namespace q_kv_rms_norm_cases {

// The plain ops that the fused op replaced: two calls of rms_norm on the same slices.
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

  plumb_status launch(const std::vector<device::OpEntry>& entries, const DeviceTensors& tensors,
                      device::Stream stream) const override {
    plumb_rms_norm_params q{}, kv{};
    q.tokens = kv.tokens = shape_.tokens;
    q.rounding = kv.rounding = shape_.rounding;
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

using P = plumb_q_kv_rms_norm_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens);
  const Formula q_hidden = t.scalar("q_hidden", &P::q_hidden);
  const Formula kv_hidden = t.scalar("kv_hidden", &P::kv_hidden);
  const Formula q_stride =
      t.scalar("q_row_stride", &P::q_row_stride, q_hidden + parameter("q_gap"));
  const Formula kv_stride =
      t.scalar("kv_row_stride", &P::kv_row_stride, kv_hidden + parameter("kv_gap"));
  t.real("eps", &P::eps, kNormEps, "added to the mean of the squares");
  t.choice("rounding", &P::rounding, kRounding);
  t.input("q", &P::q, {tokens, q_hidden}, "latent of the query").strides({q_stride, 1});
  t.input("kv", &P::kv, {tokens, kv_hidden}, "latent of the key").strides({kv_stride, 1});
  t.input("q_weight", &P::q_weight, {q_hidden}, "factor of each column of q");
  t.input("kv_weight", &P::kv_weight, {kv_hidden}, "factor of each column of kv");
  t.output("out_q", &P::out_q, {tokens, q_hidden}, "normalised rows of q");
  t.strides({{"out_q_row_stride", &P::out_q_row_stride}});
  t.output("out_kv", &P::out_kv, {tokens, kv_hidden}, "normalised rows of kv");
  t.strides({{"out_kv_row_stride", &P::out_kv_row_stride}});
  return tokens;
}

class QKvRmsNormProblem final : public TableProblem<P> {
 public:
  QKvRmsNormProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_norm_rows(tensors.at("q"), step.live, mix(step.seed, 1), step);
    fill_norm_rows(tensors.at("kv"), step.live, mix(step.seed, 2), step);
    fill_norm_weight(tensors.at("q_weight"), mix(step.seed, 3), step.fill);
    fill_norm_weight(tensors.at("kv_weight"), mix(step.seed, 4), step.fill);
    paint_gaps(tensors.at("q"));
    paint_gaps(tensors.at("kv"));
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    auto expected = reference::q_kv_rms_norm(
        {tensors.at("q").data<std::uint16_t>(), tensors.at("kv").data<std::uint16_t>(),
         tensors.at("q_weight").data<std::uint16_t>(),
         tensors.at("kv_weight").data<std::uint16_t>(), p_.tokens, p_.q_hidden, p_.kv_hidden,
         p_.q_row_stride, p_.kv_row_stride, static_cast<double>(p_.eps), rounding_of(p_.rounding)},
        numerics);
    const auto expect_one = [&](std::string_view name, reference::Estimate&& estimate) {
      const HostTensor& out = tensors.at(name);
      return expect_floats(out, mark_structured(std::move(estimate), step.fill),
                           promised_rows(step, out.spec()), groups_of(p_.tokens, 1, "token"));
    };
    return {expect_one("out_q", std::move(expected.q)),
            expect_one("out_kv", std::move(expected.kv))};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(p_.tokens, step.live, step.dead_rows);
  }

  std::unique_ptr<Composition> composition() const override {
    return std::make_unique<QKvSequence>(p_);
  }

  double cost() const override {
    return norm_cost(p_.tokens, p_.q_hidden) + norm_cost(p_.tokens, p_.kv_hidden);
  }
  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), p_.tokens, p_.q_hidden + p_.kv_hidden);
  }
  double checked_factor() const override { return 4; }  // narrow rows: most work is shuffles
};

}  // namespace q_kv_rms_norm_cases

OpDefinition define_q_kv_rms_norm() {
  using namespace q_kv_rms_norm_cases;
  return {{"q_kv_rms_norm",
           "the norms of the query's and the key's latent, fused",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"q_hidden", 1536, 1, 1 << 20, "columns of q"},
            {"kv_hidden", 512, 1, 1 << 20, "columns of kv"},
            {"q_gap", 0, 0, 1 << 20, "elements between rows of q, guarded"},
            {"kv_gap", 0, 0, 1 << 20, "elements between rows of kv, guarded"},
            kOutGap},
           {},
           {kRounding}},
          make_problem_of<QKvRmsNormProblem>,
          [](const Row&) { return true; },
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
