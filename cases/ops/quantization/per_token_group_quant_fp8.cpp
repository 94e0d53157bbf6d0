// SPDX-License-Identifier: Apache-2.0
//
// Cases of per_token_group_quant_fp8: both dialects, three scale formats in two layouts.
#include "reference/quantization/per_token_group_quant_fp8.h"

#include <fmt/format.h>

#include "cases/judge/right_values.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using reference::CodeEstimate;
using reference::Dialect;

struct QuantShape {
  std::int64_t tokens = 1, columns = 128, x_gap = 0, q_gap = 0;
  reference::ActivationQuant options;
  plumb_scale_format format = PLUMB_SCALE_F32;
  bool column_major = false;

  std::int64_t groups() const { return (columns + options.group - 1) / options.group; }
  bool packed() const { return format == PLUMB_SCALE_PACKED_UE8M0; }
  std::int64_t words() const { return packed() ? (groups() + 3) / 4 : groups(); }
  std::int64_t aligned_tokens() const { return (tokens + 3) / 4 * 4; }
};

class PerTokenGroupQuantProblem final : public Problem {
 public:
  explicit PerTokenGroupQuantProblem(const QuantShape& shape) : shape_(shape) {}

  std::int64_t capacity() const override { return shape_.tokens; }

  TensorSet make_tensors() const override {
    const std::int64_t codes = shape_.groups() * shape_.options.group;
    TensorSet tensors;
    tensors.add({.name = "x",
                 .dtype = Dtype::bf16,
                 .shape = {shape_.tokens, shape_.columns},
                 .strides = {shape_.columns + shape_.x_gap, 1}});
    tensors.add({.name = "q",
                 .dtype = Dtype::u8,
                 .shape = {shape_.tokens, codes},
                 .strides = {codes + shape_.q_gap, 1},
                 .role = Role::output,
                 .format = std::string(name_of(shape_.options.dialect)),
                 .scale_layout = scale_layout()});
    TensorSpec scales{.name = "scales",
                      .dtype = shape_.packed() ? Dtype::i32 : Dtype::f32,
                      .shape = {shape_.tokens, shape_.words()},
                      .role = Role::output,
                      .format = shape_.packed() ? "ue8m0" : "number"};
    if (shape_.column_major) {
      scales.shape = {shape_.words(), shape_.tokens};
      scales.strides = {shape_.aligned_tokens(), 1};
    }
    tensors.add(std::move(scales));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("x"), step.live, mix(step.seed, 1), step, how());
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_per_token_group_quant_fp8_params p{};
    p.x = tensors.get<std::uint16_t>("x");
    p.q = tensors.get<std::uint8_t>("q");
    p.scales = tensors.get<void>("scales");
    p.tokens = shape_.tokens;
    p.columns = shape_.columns;
    p.group_size = shape_.options.group;
    p.x_row_stride = shape_.columns + shape_.x_gap;
    p.q_row_stride = shape_.groups() * shape_.options.group + shape_.q_gap;
    p.scales_token_stride = shape_.column_major ? 1 : shape_.words();
    p.scales_group_stride = shape_.column_major ? shape_.aligned_tokens() : 1;
    p.dialect = shape_.options.dialect == Dialect::e4m3fn ? PLUMB_E4M3FN : PLUMB_E4M3FNUZ;
    p.scale_format = shape_.format;
    p.quotient = shape_.options.by_reciprocal ? PLUMB_MULTIPLY_BY_RECIPROCAL : PLUMB_DIVIDE;
    p.amax_floor = static_cast<float>(shape_.options.amax_floor);
    p.scale_floor = static_cast<float>(shape_.options.scale_floor);
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    const reference::Bf16Rows x = bf16_rows(tensors.at("x"));
    const RowMask promised = finite_rows(tensors.at("x"));
    const HostTensor scales = row_major(tensors.at("scales"));
    std::vector<TensorReport> reports;
    if (shape_.format == PLUMB_SCALE_F32) {
      reports.push_back(judge_fp32_scales(scales, x, how(), numerics, promised));
    } else {
      CodeEstimate expected = group_scale_bytes(x, how(), numerics);
      if (shape_.packed()) expected = reference::fill_up_words(expected);
      reports.push_back(judge_codes(scales, expected, promised));
    }
    reports.push_back(
        judge_codes(tensors.at("q"), group_codes(x, numbers(scales), how(), numerics), promised));
    return reports;
  }

  // Where scales are column-major, a padded token has no row of its own.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    if (spec.name == "scales" && shape_.column_major) return {};
    return promised_quant_rows(shape_.tokens, step.live, step.dead_rows);
  }

  double cost() const override {
    return quant_cost(shape_.tokens * shape_.groups(), shape_.tokens * shape_.columns);
  }
  double reference_cost() const override {
    return 60.0 * static_cast<double>(shape_.tokens * shape_.columns);
  }

 private:
  reference::GroupQuant how() const { return per_token_group_quant_fp8(shape_.options); }

  std::string scale_layout() const {
    return fmt::format("scales, one of {} codes, {}{}", shape_.options.group,
                       shape_.column_major ? "column-major" : "row-major",
                       shape_.packed() ? ", four in a word" : "");
  }

  float scale_at(const HostTensor& scales, std::int64_t token, std::int64_t group) const {
    return shape_.column_major ? scales.row<float>(group)[token] : scales.row<float>(token)[group];
  }
  std::uint8_t byte_at(const HostTensor& scales, std::int64_t token, std::int64_t group) const {
    const std::int64_t word = group / 4;
    const std::int32_t* bytes = shape_.column_major ? scales.row<std::int32_t>(word) + token
                                                    : scales.row<std::int32_t>(token) + word;
    return static_cast<std::uint8_t>(static_cast<std::uint32_t>(*bytes) >> 8 * (group % 4) & 255);
  }

  // [tokens, groups] fp32, or UE8M0 bytes: packed ones to whole words.
  HostTensor row_major(const HostTensor& scales) const {
    const std::int64_t columns = shape_.packed() ? 4 * shape_.words() : shape_.groups();
    TensorSpec spec{.name = "scales",
                    .dtype = shape_.format == PLUMB_SCALE_F32 ? Dtype::f32 : Dtype::u8,
                    .shape = {shape_.tokens, columns}};
    if (RightValues::active() != nullptr) spec.origin = origin(scales, columns);
    HostTensor table(std::move(spec));
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      for (std::int64_t group = 0; group < columns; ++group) {
        if (shape_.packed()) {
          table.row<std::uint8_t>(token)[group] = byte_at(scales, token, group);
        } else if (shape_.format == PLUMB_SCALE_F32) {
          table.row<float>(token)[group] = scale_at(scales, token, group);
        } else {
          table.row<std::uint8_t>(token)[group] = byte_of_scale(scale_at(scales, token, group));
        }
      }
    }
    return table;
  }

  // Where the scales of row_major() are.
  std::shared_ptr<const Origin> origin(const HostTensor& scales, std::int64_t columns) const {
    Origin origin{.tensor = "scales", .width = shape_.packed() ? 8 : 32};
    if (shape_.format == PLUMB_SCALE_F32_POWER_OF_TWO) origin.encode = &scale_of_byte;
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      for (std::int64_t group = 0; group < columns; ++group) {
        const std::int64_t element = shape_.packed() ? group / 4 : group;
        const std::int64_t place = shape_.column_major ? scales.row_offset(element) + token
                                                       : scales.row_offset(token) + element;
        origin.bits.push_back(32 * place + (shape_.packed() ? 8 * (group % 4) : 0));
      }
    }
    return std::make_shared<const Origin>(std::move(origin));
  }

  // What the stored scales mean.
  std::vector<double> numbers(const HostTensor& table) const {
    std::vector<double> numbers;
    for (std::int64_t token = 0; token < shape_.tokens; ++token) {
      for (std::int64_t group = 0; group < shape_.groups(); ++group) {
        const double stored = table.value(token, group);
        numbers.push_back(
            shape_.format == PLUMB_SCALE_F32
                ? stored
                : decode(reference::CodeFormat::ue8m0, static_cast<std::uint16_t>(stored)));
      }
    }
    return numbers;
  }

  QuantShape shape_;
};

// One of the words that a parameter may be; the first is the default.
int choose(const Row& row, std::string_view parameter,
           std::initializer_list<std::string_view> words) {
  const std::string_view word = row.word(parameter);
  int index = 0;
  for (const std::string_view known : words) {
    if (word == known || (word.empty() && index == 0)) return index;
    ++index;
  }
  throw BadRow(fmt::format("{}: {} cannot be '{}'", row.where, parameter, word));
}

double floor_of(const Row& row, std::string_view parameter) {
  const std::int64_t exponent = row.integer(parameter);
  return exponent == 0 ? 0 : exponent == -4 ? 1e-4f : 1e-10f;
}

QuantShape shape_of(const Row& row, const device::Properties& platform) {
  QuantShape shape;
  shape.tokens = row.integer("tokens");
  shape.columns = row.integer("columns");
  shape.x_gap = row.integer("x_gap");
  shape.q_gap = row.integer("q_gap");
  const bool fnuz = platform.fp8 == device::Fp8Dialect::e4m3fnuz;
  const int dialect = choose(row, "dialect", {"platform", "e4m3fn", "e4m3fnuz"});
  shape.options.dialect =
      dialect == 2 || (dialect == 0 && fnuz) ? Dialect::e4m3fnuz : Dialect::e4m3fn;
  shape.options.group = row.integer("group");
  shape.options.amax_floor = floor_of(row, "amax_floor");
  shape.options.scale_floor = floor_of(row, "scale_floor");
  shape.options.by_reciprocal = choose(row, "quotient", {"division", "reciprocal"}) == 1;
  shape.format = static_cast<plumb_scale_format>(
      choose(row, "scales", {"fp32", "power_of_two", "packed_ue8m0"}));
  shape.column_major = choose(row, "layout", {"row_major", "column_major"}) == 1;
  if (shape.options.amax_floor == 0 && shape.options.scale_floor == 0) {
    throw BadRow(row.where + ": a group of zeros needs a floor");
  }
  return shape;
}

}  // namespace

OpDefinition define_per_token_group_quant_fp8() {
  return {{"per_token_group_quant_fp8",
           "fp8 codes and scales of groups of columns of activations",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"columns", 7168, 1, 1 << 20, "columns of x; a last group may be shorter"},
            {"group", 128, 1, 1 << 16, "columns under one scale"},
            {"x_gap", 0, 0, 1 << 20, "elements between rows of x, guarded"},
            {"q_gap", 0, 0, 1 << 20, "bytes between rows of q, guarded"},
            {"amax_floor", -10, -10, 0, "least amax: 10^-10 or 10^-4 (-4); 0: none"},
            {"scale_floor", 0, -10, 0, "least scale: 10^-10 or 10^-4 (-4); 0: none"}},
           {"dialect", "scales", "layout", "quotient"}},
          [](const Row& row, const device::Properties& platform) -> std::unique_ptr<Problem> {
            return std::make_unique<PerTokenGroupQuantProblem>(shape_of(row, platform));
          },
          {},
          "tokens"};
}

}  // namespace plumb::cases
