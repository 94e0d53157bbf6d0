// SPDX-License-Identifier: Apache-2.0
//
// Cases of mtp_input_rms_norm: some tokens have position 0, where the embedding counts as zero
// whatever it holds. The norms of hidden slots differ much.
#include "reference/norm/mtp_input_rms_norm.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cases/drivers/composition.h"
#include "cases/ops/norm/norm_inputs.h"

namespace plumb::cases {

namespace mtp_input_rms_norm_cases {

// The plain ops that the fused op replaced: the host zeroes the embeddings of position 0, one
// rms_norm takes these, and a second one takes all hidden slots as one batch of rows.
class MtpInputSequence final : public Composition {
 public:
  MtpInputSequence(std::int64_t tokens, std::int64_t hidden, std::int64_t slots,
                   plumb_rounding rounding)
      : tokens_(tokens), hidden_(hidden), slots_(slots), rounding_(rounding) {}

  std::vector<std::string_view> ops() const override { return {"rms_norm", "rms_norm"}; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"selected_embeds", Dtype::bf16, {tokens_, hidden_}, {}});
    tensors.add({"plain_out_embeds", Dtype::bf16, {tokens_, hidden_}, {}, Role::output});
    tensors.add({"plain_out_hidden", Dtype::bf16, {tokens_, slots_, hidden_}, {}, Role::output});
    return tensors;
  }

  void fill(const Step&, TensorSet& tensors) const override {
    const std::int64_t* positions = tensors.at("positions").data<std::int64_t>();
    HostTensor& selected = tensors.at("selected_embeds");
    selected.bytes() = tensors.at("embeds").bytes();
    for (std::int64_t token = 0; token < tokens_; ++token) {
      if (positions[token] == 0) std::fill_n(selected.row<std::uint16_t>(token), hidden_, 0);
    }
  }

  plumb_status launch(const std::vector<device::OpEntry>& entries, const DeviceTensors& tensors,
                      device::Stream stream) const override {
    const auto norm = [&](const device::OpEntry& entry, std::string_view x, std::string_view weight,
                          std::string_view out, std::int64_t rows) {
      plumb_rms_norm_params p{};
      p.x = tensors.get<std::uint16_t>(x);
      p.weight = tensors.get<std::uint16_t>(weight);
      p.out = tensors.get<std::uint16_t>(out);
      p.tokens = rows;
      p.hidden = p.x_row_stride = hidden_;
      p.rounding = rounding_;
      return launch_plain_norm(entry, p, stream);
    };
    const plumb_status status =
        norm(entries[0], "selected_embeds", "enorm_weight", "plain_out_embeds", tokens_);
    if (status != PLUMB_OK) return status;
    return norm(entries[1], "previous_hidden", "hnorm_weight", "plain_out_hidden",
                tokens_ * slots_);
  }

 private:
  std::int64_t tokens_, hidden_, slots_;
  plumb_rounding rounding_;
};

using P = plumb_mtp_input_rms_norm_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), hidden = t.scalar("hidden", &P::hidden);
  const Formula slots = t.scalar("hc_mult", &P::hc_mult);
  t.real("eps", &P::eps, kNormEps, "added to the mean of the squares");
  t.choice("rounding", &P::rounding, kRounding);
  t.input("embeds", &P::embeds, {tokens, hidden}, "embedding of each token");
  t.input("previous_hidden", &P::previous_hidden, {tokens, slots, hidden}, "of the target model");
  t.input("positions", &P::positions, {tokens}, "the embedding of position 0 counts as 0");
  t.input("enorm_weight", &P::enorm_weight, {hidden}, "factor of each column of the embeddings");
  t.input("hnorm_weight", &P::hnorm_weight, {hidden}, "factor of each column of the hidden states");
  t.output("out_embeds", &P::out_embeds, {tokens, hidden}, "enorm of the embeddings");
  t.strides({{"out_embeds_row_stride", &P::out_embeds_row_stride}});
  t.output("out_hidden", &P::out_hidden, {tokens, slots, hidden}, "hnorm of each slot");
  t.strides({{"out_hidden_token_stride", &P::out_hidden_token_stride},
             {"out_hidden_slot_stride", &P::out_hidden_slot_stride}});
  return tokens;
}

class MtpInputProblem final : public TableProblem<P> {
 public:
  MtpInputProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& embeds = tensors.at("embeds");
    fill_norm_rows(embeds, step.live, mix(step.seed, 1), step);
    fill_norm_rows(tensors.at("previous_hidden"), step.live * p_.hc_mult, mix(step.seed, 2), step);
    fill_norm_weight(tensors.at("enorm_weight"), mix(step.seed, 3), step.fill);
    fill_norm_weight(tensors.at("hnorm_weight"), mix(step.seed, 4), step.fill);
    fill_positions(step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    auto expected = reference::mtp_input_rms_norm(
        {tensors.at("embeds").data<std::uint16_t>(),
         tensors.at("previous_hidden").data<std::uint16_t>(),
         tensors.at("positions").data<std::int64_t>(),
         tensors.at("enorm_weight").data<std::uint16_t>(),
         tensors.at("hnorm_weight").data<std::uint16_t>(), p_.tokens, p_.hidden, p_.hc_mult,
         static_cast<double>(p_.eps), rounding_of(p_.rounding)},
        numerics);
    const HostTensor& embeds = tensors.at("out_embeds");
    const HostTensor& hidden = tensors.at("out_hidden");
    return {expect_floats(embeds, mark_structured(std::move(expected.embeds), step.fill),
                          promised_rows(step, embeds.spec()), groups_of(p_.tokens, 1, "token")),
            expect_floats(hidden, mark_structured(std::move(expected.hidden), step.fill),
                          promised_rows(step, hidden.spec()),
                          groups_of(p_.tokens * p_.hc_mult, p_.hc_mult, "token"))};
  }

  // Padded tokens have position 0, so their embedding counts as zero and their row of out_embeds is
  // exactly zero. Foreign padding has the rows and positions of another step instead. All rows of
  // out_embeds are promised in both.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    if (spec.name == "out_embeds") return {};
    return promised_norm_rows(p_.tokens * p_.hc_mult, step.live * p_.hc_mult, step.dead_rows);
  }

  std::unique_ptr<Composition> composition() const override {
    return std::make_unique<MtpInputSequence>(p_.tokens, p_.hidden, p_.hc_mult, p_.rounding);
  }

  double cost() const override { return norm_cost(p_.tokens * (p_.hc_mult + 1), p_.hidden); }

  ReferenceWork reference_work() const override {
    return norm_work(make_tensors(), p_.tokens * (p_.hc_mult + 1), p_.hidden);
  }

 private:
  // Positions are zero, small, repeated and large. In adversarial steps the embedding of position 0
  // holds NaN and -infinity: a kernel has to select zero, since a product with zero is NaN.
  void fill_positions(const Step& step, TensorSet& tensors) const {
    std::int64_t* positions = tensors.at("positions").data<std::int64_t>();
    const std::uint64_t seed = mix(step.seed, 5);
    for (std::int64_t token = 0; token < step.live; ++token) {
      const auto counter = static_cast<std::uint64_t>(token);
      const std::int64_t kind = integer(seed, 2 * counter, 0, 3);
      positions[token] = kind == 0 ? 0 : integer(seed, 2 * counter + 1, 1, kind == 1 ? 2 : 1048575);
      if (positions[token] != 0 || step.fill != Fill::adversarial) continue;
      std::uint16_t* row = tensors.at("embeds").row<std::uint16_t>(token);
      row[token % p_.hidden] = 0x7fc0;  // NaN
      row[p_.hidden - 1] = 0xff80;      // -infinity
    }
    if (step.dead_rows == DeadRows::foreign) return;
    for (std::int64_t token = step.live; token < p_.tokens; ++token) positions[token] = 0;
  }
};

}  // namespace mtp_input_rms_norm_cases

OpDefinition define_mtp_input_rms_norm() {
  using namespace mtp_input_rms_norm_cases;
  return {{"mtp_input_rms_norm",
           "enorm of the masked embedding and hnorm of every hidden slot, fused",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"hidden", 7168, 1, 1 << 20, "columns"},
            {"hc_mult", 4, 1, 64, "hidden slots per token"},
            kOutGap},
           {},
           {kRounding}},
          make_problem_of<MtpInputProblem>,
          [](const Row&) { return true; },
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
