// SPDX-License-Identifier: Apache-2.0
//
// Cases of indexer_q_rope_quant. Rows of the table of cosines and sines that no token needs are
// NaN. The scale of a head is no output: it is read off the weight that it went into, and the codes
// are judged under it.
#include "reference/indexer/indexer_q_rope_quant.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "cases/ops/indexer/indexer_inputs.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

// A point of the unit circle: the same bits everywhere, as no cosine of a library is.
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

bool halves_of(const Row& row) {
  const std::string_view word = row.word("rope_pairs");
  if (word != "" && word != "interleaved" && word != "halves") {
    throw BadRow(fmt::format("{}: {} is no way to pair dimensions", row.where, word));
  }
  return word == "halves";
}

class IndexerQRopeQuantProblem final : public Problem {
 public:
  IndexerQRopeQuantProblem(const Row& row, const device::Properties& platform)
      : tokens_(row.integer("tokens")),
        heads_(row.integer("heads")),
        dim_(row.integer("dim")),
        rope_dim_(row.integer("rope_dim")),
        rope_offset_(row.integer("rope_offset")),
        positions_(row.integer("positions")),
        gap_(row.integer("q_gap")),
        halves_(halves_of(row)),
        softmax_scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(dim_)))),
        head_scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(heads_)))),
        dialect_(dialect_of(row, "dialect", platform)) {
    if (rope_dim_ % 2 != 0 || rope_offset_ + rope_dim_ > dim_) {
      throw BadRow(fmt::format("{}: no pairs of dimensions {} to {} of {}", row.where, rope_offset_,
                               rope_offset_ + rope_dim_, dim_));
    }
  }

  std::int64_t capacity() const override { return tokens_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({.name = "q",
                 .dtype = Dtype::bf16,
                 .shape = {tokens_, heads_, dim_},
                 .strides = {heads_ * dim_ + gap_, dim_, 1}});
    tensors.add({.name = "positions", .dtype = Dtype::i64, .shape = {tokens_}});
    tensors.add({.name = "cos_sin", .dtype = Dtype::f32, .shape = {positions_, rope_dim_}});
    tensors.add({.name = "weights", .dtype = Dtype::bf16, .shape = {tokens_, heads_}});
    tensors.add({.name = "q_out",
                 .dtype = Dtype::u8,
                 .shape = {tokens_, heads_, dim_},
                 .role = Role::output,
                 .format = std::string(name_of(dialect_)),
                 .scale_layout = "multiplied into weights_out"});
    tensors.add({.name = "weights_out",
                 .dtype = Dtype::f32,
                 .shape = {tokens_, heads_},
                 .role = Role::output});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_positions(step, tensors);
    reference::GroupQuant how = reference::fp8_quant(dialect_, dim_);
    how.amax_floor = 1e-10F;
    fill_quant_rows(tensors.at("q"), step.live * heads_, mix(step.seed, 31), step, how);
    HostTensor& weights = tensors.at("weights");
    const std::uint64_t seed = mix(step.seed, 32);
    if (step.fill == Fill::exact) {
      fill_integers(weights, 0, step.live, seed, 7);
    } else {
      fill_real(weights, 0, step.live, seed, {});
    }
    fill_dead(weights, step.live, tokens_, step.dead_rows);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_indexer_q_rope_quant_params p{};
    p.q = tensors.get<std::uint16_t>("q");
    p.positions = tensors.get<std::int64_t>("positions");
    p.cos_sin = tensors.get<float>("cos_sin");
    p.weights = tensors.get<std::uint16_t>("weights");
    p.q_out = tensors.get<std::uint8_t>("q_out");
    p.weights_out = tensors.get<float>("weights_out");
    p.tokens = tokens_;
    p.q_token_stride = heads_ * dim_ + gap_;
    p.heads = static_cast<std::int32_t>(heads_);
    p.dim = static_cast<std::int32_t>(dim_);
    p.rope_dim = static_cast<std::int32_t>(rope_dim_);
    p.rope_offset = static_cast<std::int32_t>(rope_offset_);
    p.rope_pairs = halves_ ? PLUMB_ROPE_HALVES : PLUMB_ROPE_INTERLEAVED;
    p.softmax_scale = softmax_scale_;
    p.head_scale = head_scale_;
    p.dialect = format_of(dialect_);
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics&,
                                  const plumb_numerics&) const override {
    const reference::IndexerQRopeQuant input = reference_input(tensors);
    const HostTensor &q = tensors.at("q_out"), &weights = tensors.at("weights_out");
    reference::Estimate rotated = rotated_queries(input);
    rotated.structured = step.fill != Fill::real;
    const std::vector<double> scales =
        scales_used(input, head_scales(input, rotated), weights.data<float>());
    return {judge_floats(weights, mark(indexer_q_weights(input, scales), step),
                         promised_rows(step, weights.spec()), groups_of(tokens_, 64, "64 rows")),
            judge_codes(q, indexer_q_codes(input, rotated, scales), promised_rows(step, q.spec()))};
  }

  // Rows of q_out are heads. Nothing is promised of a head with a NaN, which `foreign` dead rows
  // may have from an earlier step.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    const std::int64_t rows_per_token = spec.name == "q_out" ? heads_ : 1;
    const bool finite = step.dead_rows == DeadRows::zero || step.dead_rows == DeadRows::huge;
    RowMask promised(static_cast<std::size_t>(tokens_ * rows_per_token), finite);
    std::fill(promised.begin(), promised.begin() + step.live * rows_per_token, true);
    return promised;
  }

  double cost() const override {
    return 1.25 * quant_cost(tokens_ * heads_, tokens_ * heads_ * dim_);
  }
  double reference_cost() const override {
    return 120.0 * static_cast<double>(tokens_ * heads_ * dim_);
  }

 private:
  static reference::Estimate mark(reference::Estimate estimate, const Step& step) {
    estimate.structured = step.fill != Fill::real;
    return estimate;
  }

  // The first and the last position among others; dead tokens are at position 0, or where they
  // were.
  void fill_positions(const Step& step, TensorSet& tensors) const {
    auto* positions = tensors.at("positions").data<std::int64_t>();
    HostTensor& cos_sin = tensors.at("cos_sin");
    std::fill(cos_sin.data<float>(), cos_sin.data<float>() + cos_sin.elements(),
              std::numeric_limits<float>::quiet_NaN());
    const std::uint64_t seed = mix(step.seed, 33);
    for (std::int64_t token = 0; token < tokens_; ++token) {
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

  // At position 0 nothing is turned.
  void fill_angles(const Step& step, HostTensor& cos_sin, std::int64_t position) const {
    auto* row = cos_sin.row<float>(position);
    const std::int64_t half = rope_dim_ / 2;
    const std::uint64_t seed = mix(mix(step.seed, 34), static_cast<std::uint64_t>(position));
    for (std::int64_t i = 0; i < half; ++i) {
      const Angle at = position == 0 ? Angle{} : angle(seed, i, step.fill);
      row[i] = static_cast<float>(at.cosine);
      row[half + i] = static_cast<float>(at.sine);
    }
  }

  reference::IndexerQRopeQuant reference_input(const TensorSet& tensors) const {
    reference::IndexerQRopeQuant input;
    input.q = tensors.at("q").data<std::uint16_t>();
    input.q_token_stride = heads_ * dim_ + gap_;
    input.positions = tensors.at("positions").data<std::int64_t>();
    input.cos_sin = tensors.at("cos_sin").data<float>();
    input.weights = tensors.at("weights").data<std::uint16_t>();
    input.tokens = tokens_;
    input.heads = heads_;
    input.dim = dim_;
    input.rope_dim = rope_dim_;
    input.rope_offset = rope_offset_;
    input.halves = halves_;
    input.softmax_scale = softmax_scale_;
    input.head_scale = head_scale_;
    input.dialect = dialect_;
    return input;
  }

  std::int64_t tokens_, heads_, dim_, rope_dim_, rope_offset_, positions_, gap_;
  bool halves_;
  float softmax_scale_, head_scale_;
  reference::Dialect dialect_;
};

}  // namespace

OpDefinition define_indexer_q_rope_quant() {
  OpDefinition op;
  op.name = "indexer_q_rope_quant";
  op.summary = "lightning indexer: queries rotated and quantised, scales folded into head weights";
  op.parameters = {{"tokens", 4, 1, 65536, "padded tokens"},
                   {"heads", 64, 1, 256, "indexer heads"},
                   {"dim", 128, 2, 1024, "dimensions of a head"},
                   {"rope_dim", 64, 2, 1024, "dimensions that are rotated"},
                   {"rope_offset", 0, 0, 1024, "the first of them"},
                   {"positions", 100, 2, 1 << 24, "rows of the table of cosines and sines"},
                   {"q_gap", 0, 0, 65536, "elements between the heads of two tokens"}};
  op.word_parameters = {"rope_pairs", "dialect"};
  op.make_problem = [](const Row& row,
                       const device::Properties& platform) -> std::unique_ptr<Problem> {
    return std::make_unique<IndexerQRopeQuantProblem>(row, platform);
  };
  op.row_count = "tokens";
  return op;
}

}  // namespace plumb::cases
