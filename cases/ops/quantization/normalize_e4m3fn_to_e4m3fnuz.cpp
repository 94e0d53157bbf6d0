// SPDX-License-Identifier: Apache-2.0
//
// Cases of normalize_e4m3fn_to_e4m3fnuz: in place and out of place, with and without input scales.
// A weight has no padded rows: those past `live` are weights like the others.
#include "reference/quantization/normalize_e4m3fn_to_e4m3fnuz.h"

#include "cases/tables/problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kScaleBlock = 128;  // weights under one scale, in both directions

class NormalizeProblem final : public Problem {
 public:
  explicit NormalizeProblem(const Row& row)
      : rows_(row.integer("rows")),
        columns_(row.integer("columns")),
        stride_(columns_ + row.integer("row_gap")),
        input_scales_(row.integer("input_scales")),
        in_place_(row.integer("in_place") != 0) {}

  std::int64_t capacity() const override { return rows_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    add(tensors, "weight", Dtype::u8, {rows_, columns_}, {stride_, 1});
    add(tensors, "weight_scale", Dtype::f32, {blocks(rows_), blocks(columns_)}, {});
    if (input_scales_ > 0) add(tensors, "input_scale", Dtype::f32, {input_scales_}, {});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_weight(tensors.at("weight_before"), step);
    for (const char* name : {"weight_scale_before", "input_scale_before"}) {
      if (tensors.contains(name)) fill_scales(tensors.at(name), mix(step.seed, seed_of(name)));
    }
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    const auto source = [&](const std::string& name) {
      return tensors.get<void>(in_place_ ? name : name + "_before");
    };
    plumb_normalize_e4m3fn_to_e4m3fnuz_params p{};
    p.weight = static_cast<const std::uint8_t*>(source("weight"));
    p.weight_out = tensors.get<std::uint8_t>("weight");
    p.weight_scale = static_cast<const float*>(source("weight_scale"));
    p.weight_scale_out = tensors.get<float>("weight_scale");
    p.input_scale = static_cast<const float*>(source("input_scale"));
    p.input_scale_out = tensors.get<float>("input_scale");
    p.rows = rows_;
    p.columns = columns_;
    p.weight_row_stride = stride_;
    p.weight_scales = blocks(rows_) * blocks(columns_);
    p.input_scales = input_scales_;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    HostTensor weight = tensors.at("weight_before"), scale = tensors.at("weight_scale_before");
    const auto scales = [](HostTensor& tensor) {
      return std::span(tensor.data<float>(), static_cast<std::size_t>(tensor.elements()));
    };
    reference::normalize_e4m3fn_to_e4m3fnuz({weight.data<std::uint8_t>(), weight.bytes().size()},
                                            scales(scale));
    constexpr std::string_view kWhat = "differs from what fnuz needs";
    std::vector<TensorReport> reports = {judge_bits(tensors.at("weight"), weight, {}, kWhat),
                                         judge_bits(tensors.at("weight_scale"), scale, {}, kWhat)};
    if (input_scales_ > 0) {
      HostTensor input = tensors.at("input_scale_before");
      reference::normalize_e4m3fn_to_e4m3fnuz({}, scales(input));
      reports.push_back(judge_bits(tensors.at("input_scale"), input, {}, kWhat));
    }
    return reports;
  }

  double cost() const override { return 10.0 * static_cast<double>(rows_ * columns_); }

 private:
  static std::int64_t blocks(std::int64_t size) { return (size + kScaleBlock - 1) / kScaleBlock; }

  // Out of place the output starts as poison.
  void add(TensorSet& tensors, const std::string& name, Dtype dtype,
           const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) const {
    tensors.add({.name = name + "_before", .dtype = dtype, .shape = shape, .strides = strides});
    tensors.add({.name = name,
                 .dtype = dtype,
                 .shape = shape,
                 .strides = strides,
                 .role = Role::output,
                 .starts_as = in_place_ ? name + "_before" : "",
                 .format = dtype == Dtype::u8 ? "e4m3fnuz" : "number",
                 .scale_layout = dtype == Dtype::u8 ? "weight_scale, one of 128 x 128" : "none"});
  }

  // exact: all codes in turn. adversarial: -0, NaN, and their neighbours.
  void fill_weight(HostTensor& weight, const Step& step) const {
    constexpr std::uint8_t kSpecial[] = {0x80, 0x00, 0x7f, 0xff, 0x81, 0x7e, 0xfe, 0x08};
    const std::uint64_t seed = mix(step.seed, 1);
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t i = 0; i < columns_; ++i) {
        const std::int64_t index = row * columns_ + i;
        const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(index));
        weight.row<std::uint8_t>(row)[i] =
            step.fill == Fill::adversarial ? kSpecial[bits % 8]
            : step.fill == Fill::exact
                ? static_cast<std::uint8_t>(static_cast<std::uint64_t>(index) + seed)
                : static_cast<std::uint8_t>(bits);
      }
    }
  }

  static void fill_scales(HostTensor& scales, std::uint64_t seed) {
    for (std::int64_t i = 0; i < scales.elements(); ++i) {
      scales.data<float>()[i] =
          static_cast<float>(1e-4 * (0.1 + uniform(seed, static_cast<std::uint64_t>(i))));
    }
  }

  std::int64_t rows_, columns_, stride_, input_scales_;
  bool in_place_;
};

}  // namespace

OpDefinition define_normalize_e4m3fn_to_e4m3fnuz() {
  return {{"normalize_e4m3fn_to_e4m3fnuz",
           "OCP weights and scales made readable for fnuz hardware",
           {{"rows", 128, 1, 1 << 20, "rows of the weight"},
            {"columns", 128, 1, 1 << 20, "columns of the weight"},
            {"row_gap", 0, 0, 1 << 20, "bytes between rows of the weight, guarded"},
            {"input_scales", 0, 0, 1 << 20, "scales of static activations; 0: none"},
            {"in_place", 1, 0, 1, "1: outputs are the inputs themselves"}},
           {}},
          [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
            return std::make_unique<NormalizeProblem>(row);
          }};
}

}  // namespace plumb::cases
