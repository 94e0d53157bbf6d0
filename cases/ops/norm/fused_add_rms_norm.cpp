// SPDX-License-Identifier: Apache-2.0
//
// Cases of fused_add_rms_norm: x and residual are updated in place. In the adversarial fill,
// residuals cancel x, sums are rounding ties in bf16, or x is too small to change the residual.
#include "reference/norm/fused_add_rms_norm.h"

#include "cases/drivers/composition.h"
#include "cases/ops/norm/norm_inputs.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace fused_add_rms_norm_cases {

// The plain op that the fused op replaced: the host rounds x + residual to bf16, and rms_norm takes
// that sum.
class FusedAddSequence final : public Composition {
 public:
  FusedAddSequence(std::int64_t tokens, std::int64_t hidden, plumb_rounding rounding)
      : tokens_(tokens), hidden_(hidden), rounding_(rounding) {}

  std::vector<std::string_view> ops() const override { return {"rms_norm"}; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"sum", Dtype::bf16, {tokens_, hidden_}, {}});
    tensors.add({"plain_x", Dtype::bf16, {tokens_, hidden_}, {}, Role::output});
    return tensors;
  }

  void fill(const Step&, TensorSet& tensors) const override {
    const HostTensor& x = tensors.at("x_before");
    const HostTensor& residual = tensors.at("residual_before");
    HostTensor& sum = tensors.at("sum");
    for (std::int64_t row = 0; row < tokens_; ++row) {
      for (std::int64_t i = 0; i < hidden_; ++i) {
        sum.row<std::uint16_t>(row)[i] =
            reference::encode_bf16(x.value(row, i) + residual.value(row, i));
      }
    }
  }

  plumb_status launch(const std::vector<device::OpEntry>& entries, const DeviceTensors& tensors,
                      device::Stream stream) const override {
    plumb_rms_norm_params p{};
    p.x = tensors.get<std::uint16_t>("sum");
    p.weight = tensors.get<std::uint16_t>("weight");
    p.out = tensors.get<std::uint16_t>("plain_x");
    p.tokens = tokens_;
    p.hidden = p.x_row_stride = hidden_;
    p.rounding = rounding_;
    return launch_plain_norm(entries[0], p, stream);
  }

 private:
  std::int64_t tokens_, hidden_;
  plumb_rounding rounding_;
};

using P = plumb_fused_add_rms_norm_params;

// bf16: vLLM's compiled op and SGLang. fp32: vLLM's native path. fp32_squares: Triton kernels of
// FlashInfer and xFormers.
const ContractChoice kSum{"sum",
                          {"bf16", "fp32", "fp32_squares"},
                          "x + residual that the norm is of; fp32_squares: its squares in fp32, "
                          "its rows as they are stored"};

reference::NormedSum sum_of(plumb_added_sum sum) {
  if (sum == PLUMB_SUM_FP32) return reference::NormedSum::fp32;
  const bool squares = sum == PLUMB_SUM_FP32_SQUARES;
  return squares ? reference::NormedSum::fp32_squares : reference::NormedSum::stored;
}

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  const Formula stride = t.scalar("x_row_stride", &P::x_row_stride, hidden + parameter("row_gap"));
  t.real("eps", &P::eps, kNormEps, "added to the mean of the squares");
  t.choice("rounding", &P::rounding, kRounding);
  t.choice("sum", &P::sum, kSum);
  t.in_place("x", &P::x, {tokens, hidden}, "rows to add, then the normalised sum")
      .strides({stride, 1});
  t.in_place("residual", &P::residual, {tokens, hidden}, "added to, then the rounded sum");
  t.strides({{"residual_row_stride", &P::residual_row_stride}});
  t.input("weight", &P::weight, {hidden}, "factor of each column");
  return tokens;
}

class FusedAddRmsNormProblem final : public TableProblem<P> {
 public:
  FusedAddRmsNormProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& x = tensors.at("x_before");
    HostTensor& residual = tensors.at("residual_before");
    fill_norm_rows(x, step.live, mix(step.seed, 1), step);
    fill_norm_rows(residual, step.live, mix(step.seed, 2), step);
    for (std::int64_t row = 0; row < step.live; ++row) {
      if (step.fill == Fill::exact) match_magnitudes(row, x, residual);
      if (step.fill == Fill::adversarial) oppose(row, x, residual);
    }
    fill_norm_weight(tensors.at("weight"), mix(step.seed, 3), step.fill);
    paint_gaps(x);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const HostTensor& x = tensors.at("x");
    const HostTensor& residual = tensors.at("residual");
    reference::FusedAddRmsNormInputs inputs;
    inputs.x = tensors.at("x_before").data<std::uint16_t>();
    const auto before = packed<std::uint16_t>(tensors.at("residual_before"));
    const auto stored = packed<std::uint16_t>(residual);
    inputs.residual = before.data();
    inputs.stored = stored.data();
    inputs.weight = tensors.at("weight").data<std::uint16_t>();
    inputs.tokens = p_.tokens;
    inputs.hidden = p_.hidden;
    inputs.x_row_stride = p_.x_row_stride;
    inputs.eps = static_cast<double>(p_.eps);
    inputs.rounding = rounding_of(p_.rounding);
    inputs.sum = sum_of(p_.sum);
    auto expected = reference::fused_add_rms_norm(inputs, numerics);
    const RowMask promised = promised_rows(step, x.spec());
    const auto groups = groups_of(p_.tokens, 1, "token");
    return {expect_floats(residual, expected.residual, promised, groups),
            expect_floats(x, mark_structured(std::move(expected.x), step.fill), promised, groups)};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_norm_rows(p_.tokens, step.live, step.dead_rows);
  }

  std::unique_ptr<Composition> composition() const override {
    return std::make_unique<FusedAddSequence>(p_.tokens, p_.hidden, p_.rounding);
  }

  double cost() const override { return norm_cost(p_.tokens, p_.hidden); }
  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), p_.tokens, p_.hidden);
  }

 private:
  // Exact rows of x are +-2^k. The residual is 3 x in even rows and -3 x in odd ones, so that the
  // sums are 4 x or -2 x: one power of two per row, whose mean square is exact.
  static void match_magnitudes(std::int64_t row, const HostTensor& x, HostTensor& residual) {
    constexpr std::uint16_t kSign = 0x8000, kTimes3 = 0x00c0;  // exponent + 1, significand 1.5
    const std::uint16_t flip = row % 2 == 0 ? 0 : kSign;
    for (std::int64_t i = 0; i < x.columns(); ++i) {
      residual.row<std::uint16_t>(row)[i] =
          static_cast<std::uint16_t>((x.row<std::uint16_t>(row)[i] ^ flip) + kTimes3);
    }
  }

  // The first 8 of every 16 rows keep their residual. In the other 8 the residual cancels x, or x
  // becomes a rounding tie of the sum or too small to change it.
  static void oppose(std::int64_t row, HostTensor& x, HostTensor& residual) {
    constexpr std::uint16_t kSign = 0x8000, kOne = 0x3f80;
    constexpr std::uint16_t kTie = 0x3b80, kSwallowed = 0x3300;  // 2^-8, 2^-25
    const std::uint16_t small[] = {0, kTie, kTie | kSign, kSwallowed};
    if (row % 16 < 8) return;
    std::uint16_t* a = x.row<std::uint16_t>(row);
    std::uint16_t* b = residual.row<std::uint16_t>(row);
    for (std::int64_t i = 0; i < x.columns(); ++i) {
      if (row % 4 == 0) {
        b[i] = a[i] ^ kSign;  // cancels
      } else {
        b[i] = static_cast<std::uint16_t>(kOne + i % 128);  // [1, 2): every significand
        a[i] = small[row % 4];
      }
    }
  }
};

}  // namespace fused_add_rms_norm_cases

OpDefinition define_fused_add_rms_norm() {
  using namespace fused_add_rms_norm_cases;
  return {{"fused_add_rms_norm",
           "in place: residual = x + residual, x = its norm",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"hidden", 7168, 1, 1 << 20, "columns"},
            {"row_gap", 0, 0, 1 << 20, "elements between rows of x, guarded"},
            kOutGap},
           {},
           {kRounding, kSum}},
          make_problem_of<FusedAddRmsNormProblem>,
          // rms_norm reads bf16 rows, so it cannot take the unrounded sum: these rows have no plain
          // sequence.
          [](const Row& row) { return !row.word("sum").starts_with("fp32"); },
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
