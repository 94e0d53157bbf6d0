// SPDX-License-Identifier: Apache-2.0
//
// Cases of normalize_e4m3fn_to_e4m3fnuz: in place and out of place, with and without input scales.
// A weight has no padding: rows past `live` are weights too.
#include "reference/quantization/normalize_e4m3fn_to_e4m3fnuz.h"

#include <fmt/format.h>
#include <plumb/ops/quantization.h>

#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace normalize_e4m3fn_to_e4m3fnuz_cases {

constexpr std::int64_t kScaleBlock = 128;  // weights under one scale, in both directions

using P = plumb_normalize_e4m3fn_to_e4m3fnuz_params;

Formula members(TablePart<P>& t) {
  const Formula rows = t.scalar("rows", &P::rows), columns = t.scalar("columns", &P::columns);
  const Formula stride =
      t.scalar("weight_row_stride", &P::weight_row_stride, columns + parameter("row_gap"));
  const Formula out_stride = t.caller_scalar("weight_out_row_stride", &P::weight_out_row_stride,
                                             stride + parameter("out_gap"));
  const Formula down = div_up(rows, kScaleBlock), across = div_up(columns, kScaleBlock);
  t.scalar("weight_scales", &P::weight_scales, down * across);
  const Formula inputs = t.scalar("input_scales", &P::input_scales);
  t.input("weight", &P::weight, {rows, columns}, "OCP codes")
      .named("weight_before")
      .strides({stride, 1});
  t.input("weight_scale", &P::weight_scale, {down, across},
          "of blocks of the weight, before the call")
      .named("weight_scale_before");
  t.input("input_scale", &P::input_scale, {inputs}, "before the call")
      .named("input_scale_before")
      .when(inputs);
  t.output("weight_out", &P::weight_out, {rows, columns}, "0x80 becomes 0x00")
      .named("weight")
      .strides({out_stride, 1})
      .codes("e4m3fnuz", "weight_scale, one of 128 x 128");
  t.output("weight_scale_out", &P::weight_scale_out, {down, across}, "twice as large")
      .named("weight_scale");
  t.output("input_scale_out", &P::input_scale_out, {inputs}, "twice as large")
      .named("input_scale")
      .when(inputs);
  return rows;
}

class NormalizeProblem final : public TableProblem<P> {
 public:
  NormalizeProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), in_place_(row.integer("in_place") != 0) {
    const auto far = [&](const char* name) {
      return row.integers.contains(fmt::format("far_weight_{}", name));
    };
    if (in_place_ && (p_.weight_row_stride != p_.weight_out_row_stride ||
                      far("row_stride") != far("out_row_stride"))) {
      throw BadRow(row.where + ": in place, both strides are one");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_weight(tensors.at("weight_before"), step);
    for (const char* name : {"weight_scale_before", "input_scale_before"}) {
      if (tensors.contains(name)) fill_scales(tensors.at(name), mix(step.seed, seed_of(name)));
    }
  }

  // In place, the op's inputs are its outputs.
  plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors, OpState* state,
                      device::Stream stream) const override {
    DeviceTensors same = tensors;
    for (const char* name : {"weight", "weight_scale", "input_scale"}) {
      if (in_place_) same.set(std::string(name) + "_before", tensors.get<void>(name));
    }
    return TableProblem::launch(entry, same, state, stream);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    HostTensor weight = tensors.at("weight_before"), scale = tensors.at("weight_scale_before");
    const auto scales = [](HostTensor& tensor) {
      return std::span(tensor.data<float>(), static_cast<std::size_t>(tensor.elements()));
    };
    reference::normalize_e4m3fn_to_e4m3fnuz({weight.data<std::uint8_t>(), weight.bytes().size()},
                                            scales(scale));
    constexpr std::string_view kWhat = "differs from what fnuz needs";
    Expectations expectations = {expect_bits(tensors.at("weight"), weight, {}, kWhat),
                                 expect_bits(tensors.at("weight_scale"), scale, {}, kWhat)};
    if (p_.input_scales > 0) {
      HostTensor input = tensors.at("input_scale_before");
      reference::normalize_e4m3fn_to_e4m3fnuz({}, scales(input));
      expectations.push_back(expect_bits(tensors.at("input_scale"), input, {}, kWhat));
    }
    return expectations;
  }

  double cost() const override { return 10.0 * static_cast<double>(p_.rows * p_.columns); }

 private:
  // In place, an output starts with the bytes of the input. Out of place, it starts as poison.
  void place(TensorSpec& spec) const override {
    if (in_place_ && spec.role == Role::output) spec.starts_as = spec.name + "_before";
  }

  // Exact fill: all codes in turn. Real: random codes. Adversarial: -0, NaN and their neighbours.
  void fill_weight(HostTensor& weight, const Step& step) const {
    constexpr std::uint8_t kSpecial[] = {0x80, 0x00, 0x7f, 0xff, 0x81, 0x7e, 0xfe, 0x08};
    const std::uint64_t seed = mix(step.seed, 1);
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      for (std::int64_t i = 0; i < p_.columns; ++i) {
        const std::int64_t index = row * p_.columns + i;
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

  bool in_place_;
};

}  // namespace normalize_e4m3fn_to_e4m3fnuz_cases

OpDefinition define_normalize_e4m3fn_to_e4m3fnuz() {
  using namespace normalize_e4m3fn_to_e4m3fnuz_cases;
  return {{"normalize_e4m3fn_to_e4m3fnuz",
           "OCP weights and scales made readable for fnuz hardware",
           {{"rows", 128, 1, 1 << 20, "rows of the weight"},
            {"columns", 128, 1, 1 << 20, "columns of the weight"},
            {"row_gap", 0, 0, 1 << 20, "bytes between rows of the weight, guarded"},
            {"input_scales", 0, 0, 1 << 20, "scales of static activations; 0: none"},
            {"in_place", 1, 0, 1, "1: outputs are the inputs themselves"},
            kOutGap},
           {}},
          make_problem_of<NormalizeProblem>,
          {},
          {},
          &table_of<members>()};
}

}  // namespace plumb::cases
