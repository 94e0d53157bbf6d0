// SPDX-License-Identifier: Apache-2.0
//
// Cases of per_token_group_quant_fp8: both dialects, and three scale formats in two layouts. Bytes
// of packed scales that belong to no group have verdicts of their own.
#include "reference/quantization/per_token_group_quant_fp8.h"

#include <fmt/format.h>
#include <plumb/ops/quantization.h>

#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace per_token_group_quant_fp8_cases {

using reference::CodeEstimate;
using reference::Dialect;

using P = plumb_per_token_group_quant_fp8_params;

const ContractChoice kFiller{
    "filler",
    {"0", "94", "127", "any"},
    "bytes behind the last group in the last word of packed scales",
    {{"*", "any", "every byte is right"}, {"any", "0", "plumb's kernel of any writes 0"}}};
const ContractChoice kPaddingRows{
    "padding_rows",
    {"untouched", "zero"},
    "words behind the last token in columns of packed scales, but for the last column",
    {{"*", "*", "the words belong to the tensor under zero alone: such a pair cannot run"}}};

// Scales are [tokens, words], or [words, tokens] with columns padded to a multiple of four. A word
// is one fp32 scale or four packed UE8M0 scales.
void add_scales(TablePart<P>& t, const Formula& tokens, const Formula& groups) {
  const Formula packed = word_is("scales", "packed_ue8m0"),
                by_column = word_is("layout", "column_major");
  const Formula words = packed * div_up(groups, 4) + !packed * groups;
  const Formula aligned = div_up(tokens, 4) * 4;
  const Formula zeroed = packed * word_is("padding_rows", "zero");
  t.given(by_column, t.value("scales_group_stride", &P::scales_group_stride) - 1);
  t.scalar("scales_token_stride", &P::scales_token_stride, by_column + !by_column * words);
  const Formula stride =
      t.scalar("scales_group_stride", &P::scales_group_stride, by_column * aligned + !by_column);
  const Formula dtype = dtype_if(packed, Dtype::i32, Dtype::f32);
  t.output("scales", &P::scales, {tokens, words}, "of groups of columns")
      .elements(dtype)
      .when(!by_column);
  t.output("scales", &P::scales, {words, zeroed * aligned + !zeroed * tokens},
           "of groups of columns, by column")
      .elements(dtype)
      .strides({stride, 1})
      .when(by_column);
}

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), columns = t.scalar("columns", &P::columns);
  const Formula group = t.scalar("group_size", &P::group_size, parameter("group"));
  const Formula groups = div_up(columns, group), codes = groups * group;
  const Formula x_stride = t.scalar("x_row_stride", &P::x_row_stride, columns + parameter("x_gap"));
  const Formula q_stride = t.scalar("q_row_stride", &P::q_row_stride, codes + parameter("q_gap"));
  const Formula dialect = t.word("dialect", &P::dialect, dialect_words("dialect"));
  t.word("scale_format", &P::scale_format,
         {"scales",
          {{"fp32", PLUMB_SCALE_F32},
           {"power_of_two", PLUMB_SCALE_F32_POWER_OF_TWO},
           {"packed_ue8m0", PLUMB_SCALE_PACKED_UE8M0}}});
  t.word("quotient", &P::quotient,
         {"quotient", {{"division", PLUMB_DIVIDE}, {"reciprocal", PLUMB_MULTIPLY_BY_RECIPROCAL}}});
  t.real("amax_floor", &P::amax_floor, quant_floor("amax_floor"), "least amax of a group");
  t.real("scale_floor", &P::scale_floor, quant_floor("scale_floor"), "least scale of a group");
  t.choice("filler", &P::filler, kFiller);
  t.choice("padding_rows", &P::padding_rows, kPaddingRows);
  t.input("x", &P::x, {tokens, columns}, "rows to quantise").strides({x_stride, 1});
  t.output("q", &P::q, {tokens, codes}, "codes, 0 behind the columns")
      .strides({q_stride, 1})
      .codes(dialect);
  add_scales(t, tokens, groups);
  return tokens;
}

class PerTokenGroupQuantProblem final : public TableProblem<P> {
 public:
  PerTokenGroupQuantProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        by_column_(row.word("layout") == "column_major") {
    const std::string_view layout = row.word("layout");
    if (!layout.empty() && layout != "row_major" && !by_column_) {
      throw BadRow(row.where + ": layout is \"row_major\" or \"column_major\"");
    }
    if (p_.amax_floor == 0 && p_.scale_floor == 0) {
      throw BadRow(row.where + ": a group of zeros needs a floor");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("x"), step.live, mix(step.seed, 1), step, how());
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics& numerics,
                      const plumb_numerics&) const override {
    const reference::Bf16Rows x = bf16_rows(tensors.at("x"));
    const RowMask promised = finite_rows(tensors.at("x"));
    const HostTensor scales = part_of(tensors.at("scales"), {0, p_.tokens, 0, groups()});
    Expectations expectations;
    if (p_.scale_format == PLUMB_SCALE_F32) {
      expectations.push_back(expect_fp32_scales(scales, x, how(), numerics, promised));
    } else {
      const CodeEstimate expected = group_scale_bytes(x, how(), numerics);
      expectations.push_back(expect_codes(scales, expected, promised));
    }
    append(expect_padding(tensors.at("scales"), promised), expectations);
    expectations.push_back(
        expect_codes(tensors.at("q"), group_codes(x, numbers(scales), how(), numerics), promised));
    return expectations;
  }

  // Column-major scales have no row for each token, so that all their rows are promised.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    if (spec.name == "scales" && by_column_) return {};
    return promised_quant_rows(p_.tokens, step.live, step.dead_rows);
  }

  // In the last column of words, the words behind the last token are not zeroed and not promised.
  ColumnRanges promised_columns(const TensorSet&, const TensorSpec& spec) const override {
    if (spec.name != "scales" || !by_column_) return {};
    ColumnRanges ranges(static_cast<std::size_t>(spec.shape[0]), ColumnRange{0, spec.shape[1]});
    if (!ranges.empty()) ranges.back() = {0, p_.tokens};
    return ranges;
  }

  // Filler that may be anything counts as 0: a kernel may leave these bytes as they are.
  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics&) const override {
    const std::int64_t in_last = groups() % 4;
    if (spec.name != "scales" || !packed() || in_last == 0 || p_.filler != PLUMB_FILLER_ANY) {
      return std::nullopt;
    }
    HostTensor scales = tensors.at("scales");
    const auto kept = static_cast<std::int32_t>((1U << 8 * in_last) - 1);
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      const std::int64_t word = groups() / 4;
      (by_column_ ? scales.row<std::int32_t>(word)[token]
                  : scales.row<std::int32_t>(token)[word]) &= kept;
    }
    return scales;
  }

  double cost() const override { return quant_cost(p_.tokens * groups(), p_.tokens * p_.columns); }
  double reference_cost() const override {
    return 60.0 * static_cast<double>(p_.tokens * p_.columns);
  }

 private:
  void place(TensorSpec& spec) const override {
    if (spec.name == "q") spec.scale_layout = scale_layout();
    if (spec.name == "scales" && packed()) spec.format = "ue8m0";
  }

  reference::GroupQuant how() const {
    return reference::per_token_group_quant_fp8(
        {.dialect = p_.dialect == PLUMB_E4M3FNUZ ? Dialect::e4m3fnuz : Dialect::e4m3fn,
         .group = p_.group_size,
         .amax_floor = static_cast<double>(p_.amax_floor),
         .scale_floor = static_cast<double>(p_.scale_floor),
         .by_reciprocal = p_.quotient == PLUMB_MULTIPLY_BY_RECIPROCAL});
  }
  std::int64_t groups() const { return (p_.columns + p_.group_size - 1) / p_.group_size; }
  bool packed() const { return p_.scale_format == PLUMB_SCALE_PACKED_UE8M0; }

  std::string scale_layout() const {
    return fmt::format("scales, one of {} codes, {}{}", p_.group_size,
                       by_column_ ? "column-major" : "row-major",
                       packed() ? ", four in a word" : "");
  }

  float scale_at(const HostTensor& scales, std::int64_t token, std::int64_t group) const {
    return by_column_ ? scales.row<float>(group)[token] : scales.row<float>(token)[group];
  }
  std::uint8_t byte_at(const HostTensor& scales, std::int64_t token, std::int64_t group) const {
    const std::int64_t word = group / 4;
    const std::int32_t* bytes = by_column_ ? scales.row<std::int32_t>(word) + token
                                           : scales.row<std::int32_t>(token) + word;
    return static_cast<std::uint8_t>(static_cast<std::uint32_t>(*bytes) >> 8 * (group % 4) & 255);
  }

  // A part of the scales: groups [begin, end) of tokens [first, last).
  struct ScaleRange {
    std::int64_t first, last, begin, end;
  };
  HostTensor part_of(const HostTensor& scales, const ScaleRange& part) const {
    TensorSpec spec{.name = "scales",
                    .dtype = p_.scale_format == PLUMB_SCALE_F32 ? Dtype::f32 : Dtype::u8,
                    .shape = {part.last - part.first, part.end - part.begin}};
    spec.origin = origin(scales, part);
    HostTensor table(std::move(spec));
    for (std::int64_t row = 0; row < table.rows(); ++row) {
      for (std::int64_t column = 0; column < table.columns(); ++column) {
        const std::int64_t token = part.first + row, group = part.begin + column;
        if (packed()) {
          table.row<std::uint8_t>(row)[column] = byte_at(scales, token, group);
        } else if (p_.scale_format == PLUMB_SCALE_F32) {
          table.row<float>(row)[column] = scale_at(scales, token, group);
        } else {
          table.row<std::uint8_t>(row)[column] = byte_of_scale(scale_at(scales, token, group));
        }
      }
    }
    return table;
  }

  // Maps the scales of part_of() to their places in the stored tensor.
  std::shared_ptr<const Origin> origin(const HostTensor& scales, const ScaleRange& part) const {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < scales.rows(); ++row) rows.push_back(scales.row_offset(row));
    Origin origin{.tensor = "scales", .width = packed() ? 8 : 32};
    origin.bit = [rows = std::move(rows), packed = packed(), by_column = by_column_, part](
                     std::int64_t row, std::int64_t column) -> std::int64_t {
      const std::int64_t token = part.first + row, group = part.begin + column;
      const std::int64_t element = packed ? group / 4 : group;
      const auto in = static_cast<std::size_t>(by_column ? element : token);
      const std::int64_t place = rows[in] + (by_column ? token : element);
      return 32 * place + (packed ? 8 * (group % 4) : 0);
    };
    if (p_.scale_format == PLUMB_SCALE_F32_POWER_OF_TWO) origin.encode = &scale_of_byte;
    return std::make_shared<const Origin>(std::move(origin));
  }

  // Expects the same byte in every place of a part.
  Expectation expect_byte(const HostTensor& scales, const ScaleRange& part, std::int64_t byte,
                          std::string_view what, const RowMask& promised) const {
    const HostTensor bytes = part_of(scales, part);
    std::vector<std::int64_t> right(static_cast<std::size_t>(bytes.elements()), byte);
    Expectation expectation = expect_exact(bytes, std::move(right), promised);
    expectation.basis = what;
    return expectation;
  }

  // Expects the bytes of packed scales that belong to no group: filler and padding rows.
  Expectations expect_padding(const HostTensor& scales, const RowMask& promised) const {
    constexpr std::int64_t kFillers[] = {0, 94, 127};
    const std::int64_t words = (groups() + 3) / 4;
    Expectations expectations;
    if (packed() && groups() < 4 * words && p_.filler != PLUMB_FILLER_ANY) {
      const ScaleRange filler{0, p_.tokens, groups(), 4 * words};
      expectations.push_back(
          expect_byte(scales, filler, kFillers[p_.filler], " (filler)", promised));
    }
    const std::int64_t rows = by_column_ ? scales.columns() : p_.tokens;
    if (packed() && rows > p_.tokens && words > 1) {
      const ScaleRange padding{p_.tokens, rows, 0, 4 * (words - 1)};
      expectations.push_back(expect_byte(scales, padding, 0, " (padding rows)", {}));
    }
    return expectations;
  }

  // The stored scales as numbers.
  std::vector<double> numbers(const HostTensor& table) const {
    std::vector<double> numbers;
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      for (std::int64_t group = 0; group < groups(); ++group) {
        const double stored = table.value(token, group);
        numbers.push_back(
            p_.scale_format == PLUMB_SCALE_F32
                ? stored
                : decode(reference::CodeFormat::ue8m0, static_cast<std::uint16_t>(stored)));
      }
    }
    return numbers;
  }

  bool by_column_;
};

}  // namespace per_token_group_quant_fp8_cases

OpDefinition define_per_token_group_quant_fp8() {
  using namespace per_token_group_quant_fp8_cases;
  return {{"per_token_group_quant_fp8",
           "fp8 codes and scales of groups of columns of activations",
           {{"tokens", 4, 0, 1 << 20, "rows"},
            {"columns", 7168, 1, 1 << 20, "columns of x; a last group may be shorter"},
            {"group", 128, 1, 1 << 16, "columns under one scale"},
            {"x_gap", 0, 0, 1 << 20, "elements between rows of x, guarded"},
            {"q_gap", 0, 0, 1 << 20, "bytes between rows of q, guarded"},
            {"amax_floor", -10, -10, 0, "least amax: 10^-10 or 10^-4 (-4); 0: none", true},
            {"scale_floor", 0, -10, 0, "least scale: 10^-10 or 10^-4 (-4); 0: none", true}},
           {dialect_word(),
            {"scales", {"fp32", "power_of_two", "packed_ue8m0"}, "form of the scales"},
            {"layout", {"row_major", "column_major"}, "of the scales"},
            {"quotient", {"division", "reciprocal"}, "x over the scale, or times its reciprocal"}},
           {kFiller, kPaddingRows}},
          make_problem_of<PerTokenGroupQuantProblem>,
          {},
          "tokens",
          &table_of<members>()};
}

}  // namespace plumb::cases
