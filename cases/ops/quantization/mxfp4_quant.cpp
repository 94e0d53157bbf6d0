// SPDX-License-Identifier: Apache-2.0
//
// Cases of mxfp4_quant: widths around the group of 32, strided rows, and the choices of engines.
// Hardware, and vLLM on it: the first value of each choice. DeepGEMM's test helper and SGLang's
// quant_fp4_e2m1: floor 1e-4, ties toward_zero, negative_zero dropped. AITER: floor 0x1p-125, ties
// away, scale_rule even. torchao: its EVEN and FLOOR are the rules even and floor; its RCEIL has a
// scale byte 0, which the rule rceil does not have.
#include "reference/quantization/mxfp4_quant.h"

#include <plumb/ops/quantization.h>

#include "cases/ops/quantization/quant_inputs.h"
#include "cases/ops/quantization/stored_codes.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace mxfp4_quant_cases {

using reference::CodeFormat;
using reference::kMxGroup;

using P = plumb_mxfp4_quant_params;

const ContractChoice kFloor{"floor",
                            {"0x1.8p-124", "1e-4", "0x1p-125"},
                            "least amax of a group; 0x1.8p-124: 6 * 2^-126; 0x1p-125: 4 * 2^-127"};
const ContractChoice kTies{
    "ties", {"even", "toward_zero", "away"}, "numbers halfway between two codes"};
const ContractChoice kScaleRule{
    "scale_rule",
    {"rceil", "even", "floor"},
    "scale; rceil: amax / 6, rounded up to a power of two; floor: amax / 4, rounded down to one; "
    "even: the same after the mantissa of amax was rounded to one bit"};

reference::E2m1Ties ties_of(plumb_ties ties) {
  if (ties == PLUMB_TIES_AWAY) return reference::E2m1Ties::away;
  const bool even = ties == PLUMB_TIES_TO_EVEN;
  return even ? reference::E2m1Ties::even : reference::E2m1Ties::toward_zero;
}

reference::ScaleRule rule_of(plumb_mx_scale_rule rule) {
  if (rule == PLUMB_MX_SCALE_RCEIL) return reference::ScaleRule::rceil;
  const bool even = rule == PLUMB_MX_SCALE_EVEN;
  return even ? reference::ScaleRule::even : reference::ScaleRule::floor;
}
const ContractChoice kNegativeZero{"negative_zero",
                                   {"kept", "dropped"},
                                   "-0, and what is rounded to zero from below: code 8 or 0"};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), columns = t.scalar("columns", &P::columns);
  const Formula stride = t.scalar("x_row_stride", &P::x_row_stride, columns + parameter("row_gap"));
  t.real("amax_floor", &P::amax_floor, kFloor, "least amax of a group");
  t.choice("ties", &P::ties, kTies);
  t.choice("negative_zero", &P::negative_zero, kNegativeZero);
  t.choice("scale_rule", &P::scale_rule, kScaleRule);
  t.input("x", &P::x, {tokens, columns}, "rows to quantise").strides({stride, 1});
  t.output("q", &P::q, {tokens, columns / 2}, "two codes in a byte, the even column low")
      .codes("e2m1", "scales, one of 32 codes");
  t.strides({{"q_row_stride", &P::q_row_stride}});
  t.output("scales", &P::scales, {tokens, columns / kMxGroup}, "of groups of 32").codes("ue8m0");
  t.strides({{"scales_row_stride", &P::scales_row_stride}});
  return tokens;
}

class Mxfp4QuantProblem final : public TableProblem<P> {
 public:
  Mxfp4QuantProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {
    if (p_.columns % kMxGroup != 0) throw BadRow(row.where + ": columns come in groups of 32");
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("x"), step.live, mix(step.seed, 1), step, how());
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics& numerics,
                      const plumb_numerics&) const override {
    const reference::Bf16Rows x = bf16_rows(tensors.at("x"));
    const RowMask promised = finite_rows(tensors.at("x"));
    const HostTensor& scales = tensors.at("scales");
    return {expect_codes(scales, group_scale_bytes(x, how(), numerics), promised),
            expect_codes(one_code_per_byte(tensors.at("q")),
                         group_codes(x, numbers(scales), how(), numerics), promised)};
  }

  RowMask promised_rows(const Step& step, const TensorSpec&) const override {
    return promised_quant_rows(p_.tokens, step.live, step.dead_rows);
  }

  double cost() const override {
    return quant_cost(p_.tokens * p_.columns / kMxGroup, 2 * p_.tokens * p_.columns);
  }
  double checked_factor() const override { return 4; }
  double reference_cost() const override {
    return 60.0 * static_cast<double>(p_.tokens * p_.columns);
  }

 private:
  reference::GroupQuant how() const {
    return reference::mxfp4_quant(
        double{p_.amax_floor},
        {.ties = ties_of(p_.ties), .zero_has_sign = p_.negative_zero == PLUMB_NEGATIVE_ZERO_KEPT},
        rule_of(p_.scale_rule));
  }

  static std::vector<double> numbers(const HostTensor& scales) {
    std::vector<double> numbers;
    for (const std::uint8_t byte : packed<std::uint8_t>(scales)) {
      numbers.push_back(decode(CodeFormat::ue8m0, byte));
    }
    return numbers;
  }
};

}  // namespace mxfp4_quant_cases

OpDefinition define_mxfp4_quant() {
  using namespace mxfp4_quant_cases;
  return {{"mxfp4_quant",
           "E2M1 codes and UE8M0 scales of groups of 32 columns",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"columns", 7168, 32, 1 << 20, "columns, a multiple of 32"},
            {"row_gap", 0, 0, 1 << 20, "elements between rows of x, guarded"},
            kOutGap},
           {},
           {kFloor, kTies, kNegativeZero, kScaleRule}},
          make_problem_of<Mxfp4QuantProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
