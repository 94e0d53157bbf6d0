// SPDX-License-Identifier: Apache-2.0
//
// Cases of indexer_q_rope_quant. Rows of cos_sin that no token needs are NaN. The scale of a head
// is no output: it is computed back from the head's output weight, which it is multiplied into, and
// the codes are judged under it.
#include "reference/indexer/indexer_q_rope_quant.h"

#include <fmt/format.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "cases/ops/indexer/indexer_inputs.h"
#include "cases/ops/norm/rope_inputs.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace indexer_q_rope_quant_cases {

// A point of the unit circle without a library's cosine, so that all platforms get the same bits.
struct Angle {
  double cosine = 1, sine = 0;
};
Angle angle(std::uint64_t seed, std::int64_t i, Fill fill) {
  const auto counter = static_cast<std::uint64_t>(i);
  if (fill == Fill::exact) {
    constexpr std::array<Angle, 4> kQuarters = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};
    return kQuarters[random_bits(seed, counter) % 4];
  }
  const double t = 4 * uniform(seed, counter) - 2;
  return {(1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)};
}

using P = plumb_indexer_q_rope_quant_params;

// floor: 1e-4 in the fused kernels of vLLM 0.22.1, vLLM 0.33 and SGLang; 1e-10 in Triton's
// per_token_group_quant of V3.2's unfused path. SGLang's fp8 kernel keeps fp32 up to the codes
// (rotated_rounding = none), and its scale is no power of two (scale_form = fp32).
const ContractChoice kFloor{"floor", {"1e-4", "1e-10"}, "least amax of a head"};
const ContractChoice kScaleForm{
    "scale_form", {"pow2", "fp32"}, "of a head: rounded up to a power of two, or as it is"};
const ContractChoice kRotatedRounding{
    "rotated_rounding", {"bf16", "none"}, "of rotated values before the largest is taken"};
// q_and_k: SGLang for V4, DeepSeek's model.py for V3.2.
const ContractChoice kHadamard{
    "hadamard", {"none", "q_and_k"}, "transform of rotated values before the largest is taken"};

// n^-0.5, where n is an integer parameter of the row.
std::function<float(const Row&)> inverse_root_of(std::string parameter) {
  return [=](const Row& row) {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(row.integer(parameter))));
  };
}

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), heads = t.scalar("heads", &P::heads);
  const Formula dim = t.scalar("dim", &P::dim), rope_dim = t.scalar("rope_dim", &P::rope_dim);
  t.scalar("rope_offset", &P::rope_offset);
  t.word("rope_pairs", &P::rope_pairs,
         {"rope_pairs", {{"interleaved", PLUMB_ROPE_INTERLEAVED}, {"halves", PLUMB_ROPE_HALVES}}});
  t.real("softmax_scale", &P::softmax_scale, inverse_root_of("dim"),
         "factor of the weights: dim^-0.5");
  t.real("head_scale", &P::head_scale, inverse_root_of("heads"),
         "factor of the weights: heads^-0.5");
  t.real("amax_floor", &P::amax_floor, kFloor, "least amax of a head");
  t.choice("scale_form", &P::scale_form, kScaleForm);
  t.choice("rotated_rounding", &P::rotated_rounding, kRotatedRounding);
  t.choice("hadamard", &P::hadamard, kHadamard);
  const Formula dialect = t.word("dialect", &P::dialect, dialect_words("dialect"));
  const Formula stride =
      t.scalar("q_token_stride", &P::q_token_stride, heads * dim + parameter("q_gap"));
  t.given(parameter("positions"), limit(&EngineLimits::positions, "positions"));
  t.input("q", &P::q, {tokens, heads, dim}, "queries").strides({stride, dim, 1});
  t.input("positions", &P::positions, {tokens}, "of each token");
  t.input("cos_sin", &P::cos_sin, {parameter("positions"), rope_dim}, "cosines, then sines");
  t.input("weights", &P::weights, {tokens, heads}, "of each head");
  t.output("q_out", &P::q_out, {tokens, heads, dim}, "codes")
      .codes(dialect, "multiplied into weights_out");
  t.strides({{"q_out_token_stride", &P::q_out_token_stride},
             {"q_out_head_stride", &P::q_out_head_stride}});
  t.output("weights_out", &P::weights_out, {tokens, heads}, "with all scales");
  t.strides({{"weights_out_row_stride", &P::weights_out_row_stride}});
  return tokens;
}

class IndexerQRopeQuantProblem final : public TableProblem<P> {
 public:
  IndexerQRopeQuantProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        positions_(row.integer("positions")),
        dialect_(dialect_of(row, "dialect", platform)) {
    if (p_.rope_dim % 2 != 0 || p_.rope_offset + p_.rope_dim > p_.dim) {
      throw BadRow(fmt::format("{}: no pairs of dimensions {} to {} of {}", row.where,
                               p_.rope_offset, p_.rope_offset + p_.rope_dim, p_.dim));
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_positions(step, tensors);
    reference::GroupQuant how = reference::fp8_quant(dialect_, p_.dim);
    how.amax_floor = p_.amax_floor;
    fill_quant_rows(tensors.at("q"), step.live * p_.heads, mix(step.seed, 31), step, how);
    HostTensor& weights = tensors.at("weights");
    const std::uint64_t seed = mix(step.seed, 32);
    if (step.fill == Fill::exact) {
      fill_integers(weights, 0, step.live, seed, 7);
    } else {
      fill_real(weights, 0, step.live, seed, {});
      limit_weights(step, tensors.at("q"), weights);
    }
    fill_dead(weights, step.live, p_.tokens, step.dead_rows);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const reference::IndexerQRopeQuant input = reference_input(tensors);
    const HostTensor &q = tensors.at("q_out"), &weights = tensors.at("weights_out");
    reference::Estimate rotated = rotated_queries(input, numerics);
    rotated.structured = step.fill != Fill::real;
    const std::vector<reference::UsedScale> scales =
        scales_used(input, head_scales(input, rotated), packed<float>(weights).data());
    return {
        expect_floats(weights, mark(indexer_q_weights(input, scales), step),
                      promised_rows(step, weights.spec()), groups_of(p_.tokens, 64, "64 rows")),
        expect_codes(q, indexer_q_codes(input, rotated, scales), promised_rows(step, q.spec()))};
  }

  // Rows of q_out are heads. Heads with NaN are not promised; `foreign` dead rows may have NaN from
  // an earlier step.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    const std::int64_t rows_per_token = spec.name == "q_out" ? p_.heads : 1;
    const bool finite = step.dead_rows == DeadRows::zero || step.dead_rows == DeadRows::huge;
    RowMask promised(static_cast<std::size_t>(p_.tokens * rows_per_token), finite);
    std::fill(promised.begin(), promised.begin() + step.live * rows_per_token, true);
    return promised;
  }

  double cost() const override {
    return 1.25 * quant_cost(p_.tokens * p_.heads, p_.tokens * p_.heads * p_.dim);
  }
  double reference_cost() const override {
    return 120.0 * static_cast<double>(p_.tokens * p_.heads * p_.dim);
  }

 private:
  // Limits weights so that weight * scale is finite in any order of the factors. The scale is
  // largest for fnuz codes (224), may be rounded up by a factor of 2, and grows by up to sqrt(dim)
  // in a Hadamard transform.
  void limit_weights(const Step& step, const HostTensor& q, HostTensor& weights) const {
    constexpr double kLargest = 0x1p127 * 224 / 2;
    const double growth = std::sqrt(static_cast<double>(p_.dim));
    for (std::int64_t head = 0; head < step.live * p_.heads; ++head) {
      const auto* row = q.row<std::uint16_t>(head / p_.heads) + head % p_.heads * p_.dim;
      double amax = 0;
      for (std::int64_t d = 0; d < p_.dim; ++d) {
        amax = std::max(amax, std::abs(reference::decode_bf16(row[d])));
      }
      std::uint16_t& weight = weights.row<std::uint16_t>(head / p_.heads)[head % p_.heads];
      const double value = reference::decode_bf16(weight);
      if (amax * growth * std::abs(value) <= kLargest) continue;
      weight = reference::encode_bf16(std::clamp(value, -1.0, 1.0));
    }
  }

  static reference::Estimate mark(reference::Estimate estimate, const Step& step) {
    estimate.structured = step.fill != Fill::real;
    return estimate;
  }

  // Token 0 has the first position, token 1 the last one, all others random ones. Dead (padded)
  // tokens have position 0, or with `foreign` padding the positions of another step.
  void fill_positions(const Step& step, TensorSet& tensors) const {
    auto* positions = tensors.at("positions").data<std::int64_t>();
    HostTensor& cos_sin = tensors.at("cos_sin");
    std::fill(cos_sin.data<float>(), cos_sin.data<float>() + cos_sin.elements(),
              std::numeric_limits<float>::quiet_NaN());
    const std::uint64_t seed = mix(step.seed, 33);
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      if (token < step.live) {
        const std::int64_t any =
            integer(seed, static_cast<std::uint64_t>(token), 0, positions_ - 1);
        positions[token] = token == 0 ? 0 : token == 1 ? positions_ - 1 : any;
      } else if (step.dead_rows != DeadRows::foreign) {
        positions[token] = 0;
      }
      fill_angles(step, cos_sin, positions[token]);
    }
  }

  // At position 0 the rotation is the identity.
  void fill_angles(const Step& step, HostTensor& cos_sin, std::int64_t position) const {
    auto* row = cos_sin.row<float>(position);
    const std::int64_t half = p_.rope_dim / 2;
    const std::uint64_t seed = mix(mix(step.seed, 34), static_cast<std::uint64_t>(position));
    for (std::int64_t i = 0; i < half; ++i) {
      const Angle at = position == 0 ? Angle{} : angle(seed, i, step.fill);
      row[i] = static_cast<float>(at.cosine);
      row[half + i] = static_cast<float>(at.sine);
    }
  }

  reference::IndexerQRopeQuant reference_input(const TensorSet& tensors) const {
    rope_rows(tensors);  // throws BadRow for a position without a row
    reference::IndexerQRopeQuant input;
    input.q = tensors.at("q").data<std::uint16_t>();
    input.q_token_stride = p_.q_token_stride;
    input.positions = tensors.at("positions").data<std::int64_t>();
    input.cos_sin = tensors.at("cos_sin").data<float>();
    input.weights = tensors.at("weights").data<std::uint16_t>();
    input.tokens = p_.tokens;
    input.heads = p_.heads;
    input.dim = p_.dim;
    input.rope_dim = p_.rope_dim;
    input.rope_offset = p_.rope_offset;
    input.halves = p_.rope_pairs == PLUMB_ROPE_HALVES;
    input.softmax_scale = p_.softmax_scale;
    input.head_scale = p_.head_scale;
    input.amax_floor = p_.amax_floor;
    input.dialect = dialect_;
    input.pow2_scale = p_.scale_form == PLUMB_QUERY_SCALE_POW2;
    input.rounds_to_bf16 = p_.rotated_rounding == PLUMB_ROTATED_BF16;
    input.hadamard = p_.hadamard == PLUMB_HADAMARD_Q_AND_K;
    return input;
  }

  std::int64_t positions_;
  reference::Dialect dialect_;
};

}  // namespace indexer_q_rope_quant_cases

OpDefinition define_indexer_q_rope_quant() {
  using namespace indexer_q_rope_quant_cases;
  OpDefinition op;
  op.name = "indexer_q_rope_quant";
  op.summary = "lightning indexer: queries rotated and quantised, scales folded into head weights";
  op.parameters = {{"tokens", 4, 1, 65536, "padded tokens"},
                   {"heads", 64, 1, 256, "indexer heads"},
                   {"dim", 128, 2, 1024, "dimensions of a head"},
                   {"rope_dim", 64, 2, 1024, "dimensions that are rotated"},
                   {"rope_offset", 0, 0, 1024, "the first of them"},
                   {"positions", 100, 2, 1 << 24, "rows of the table of cosines and sines"},
                   {"q_gap", 0, 0, 65536, "elements between the heads of two tokens"},
                   kOutGap};
  op.word_parameters = {{"rope_pairs",
                         {"interleaved", "halves"},
                         "which columns turn together: 2i and 2i + 1, or i and i + 32"},
                        dialect_word()};
  op.choices = {kFloor, kScaleForm, kRotatedRounding, kHadamard};
  op.make_problem = make_problem_of<IndexerQRopeQuantProblem>;
  op.table = &table_of<members>();
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
