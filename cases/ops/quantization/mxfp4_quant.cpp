// SPDX-License-Identifier: Apache-2.0
//
// Cases of mxfp4_quant: widths around the group of 32, strided rows, floors.
#include "reference/quantization/mxfp4_quant.h"

#include "cases/judge/right_values.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using reference::CodeFormat;
using reference::kMxGroup;

class Mxfp4QuantProblem final : public Problem {
 public:
  explicit Mxfp4QuantProblem(const Row& row)
      : tokens_(row.integer("tokens")),
        columns_(row.integer("columns")),
        stride_(columns_ + row.integer("row_gap")),
        amax_floor_(row.integer("amax_floor") == -4 ? 1e-4f : 1e-10f) {
    if (columns_ % kMxGroup != 0) throw BadRow(row.where + ": columns come in groups of 32");
  }

  std::int64_t capacity() const override { return tokens_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"x", Dtype::bf16, {tokens_, columns_}, {stride_, 1}});
    tensors.add({.name = "q",
                 .dtype = Dtype::u8,
                 .shape = {tokens_, columns_ / 2},
                 .role = Role::output,
                 .format = "e2m1",
                 .scale_layout = "scales, one of 32 codes"});
    tensors.add({.name = "scales",
                 .dtype = Dtype::u8,
                 .shape = {tokens_, columns_ / kMxGroup},
                 .role = Role::output,
                 .format = "ue8m0"});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("x"), step.live, mix(step.seed, 1), step, how());
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_mxfp4_quant_params p{};
    p.x = tensors.get<std::uint16_t>("x");
    p.q = tensors.get<std::uint8_t>("q");
    p.scales = tensors.get<std::uint8_t>("scales");
    p.tokens = tokens_;
    p.columns = columns_;
    p.x_row_stride = stride_;
    p.amax_floor = amax_floor_;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    const reference::Bf16Rows x = bf16_rows(tensors.at("x"));
    const RowMask promised = finite_rows(tensors.at("x"));
    const HostTensor& scales = tensors.at("scales");
    return {judge_codes(scales, group_scale_bytes(x, how(), numerics), promised),
            judge_codes(one_code_per_byte(tensors.at("q")),
                        group_codes(x, numbers(scales), how(), numerics), promised)};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_quant_rows(tokens_, step.live, step.dead_rows);
  }

  double cost() const override {
    return quant_cost(tokens_ * columns_ / kMxGroup, 2 * tokens_ * columns_);
  }
  double checked_factor() const override { return 4; }
  double reference_cost() const override { return 60.0 * static_cast<double>(tokens_ * columns_); }

 private:
  reference::GroupQuant how() const { return reference::mxfp4_quant(double{amax_floor_}); }

  HostTensor one_code_per_byte(const HostTensor& q) const {
    TensorSpec spec{.name = "q", .dtype = Dtype::u8, .shape = {tokens_, columns_}};
    if (RightValues::active() != nullptr) {
      Origin origin{.tensor = "q", .width = 4};
      for (std::int64_t i = 0; i < tokens_ * columns_; ++i) origin.bits.push_back(4 * i);
      spec.origin = std::make_shared<const Origin>(std::move(origin));
    }
    HostTensor codes(std::move(spec));
    const auto unpacked =
        reference::unpack_codes({q.data<std::uint8_t>(), static_cast<std::size_t>(q.elements())});
    std::copy(unpacked.begin(), unpacked.end(), codes.data<std::uint8_t>());
    return codes;
  }

  static std::vector<double> numbers(const HostTensor& scales) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < scales.elements(); ++i) {
      numbers.push_back(decode(CodeFormat::ue8m0, scales.data<std::uint8_t>()[i]));
    }
    return numbers;
  }

  std::int64_t tokens_, columns_, stride_;
  float amax_floor_;
};

}  // namespace

OpDefinition define_mxfp4_quant() {
  return {{"mxfp4_quant",
           "E2M1 codes and UE8M0 scales of groups of 32 columns",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"columns", 7168, 32, 1 << 20, "columns, a multiple of 32"},
            {"row_gap", 0, 0, 1 << 20, "elements between rows of x, guarded"},
            {"amax_floor", -4, -10, -4, "least amax: 10^-4 (-4) or 10^-10"}},
           {}},
          [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
            return std::make_unique<Mxfp4QuantProblem>(row);
          },
          {},
          "tokens"};
}

}  // namespace plumb::cases
