// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/placeholder_references.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::cases {

namespace {

std::uint64_t mixed(std::uint64_t x) {
  for (const std::uint64_t factor : {0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu}) {
    x = (x ^ (x >> (factor == 0xbf58476d1ce4e5b9u ? 30 : 27))) * factor;
  }
  return x ^ (x >> 31);
}

std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float number(const HostTensor& tensor, std::int64_t row, std::int64_t column) {
  if (tensor.spec().dtype == Dtype::f32) return tensor.row<float>(row)[column];
  return std::bit_cast<float>(std::uint32_t{tensor.row<std::uint16_t>(row)[column]} << 16);
}

void store(float value, std::int64_t row, std::int64_t column, HostTensor& to) {
  if (to.spec().dtype == Dtype::f32) {
    to.row<float>(row)[column] = value;
  } else if (std::isnan(value)) {
    to.row<std::uint16_t>(row)[column] =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  } else {
    to.row<std::uint16_t>(row)[column] = bf16_of(value);
  }
}

Dtype dtype_of(plumb_format format) { return format == PLUMB_F32 ? Dtype::f32 : Dtype::bf16; }

// A placeholder in which each output row is a function of one input row.
class RowPlaceholder : public PlaceholderReference {
 public:
  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"in", in_dtype_, {rows_, in_columns_}});
    tensors.add({"out", out_dtype_, {rows_, out_columns_}, {}, Role::output});
    return tensors;
  }
  std::vector<Binding> bindings() const override { return {{"in", in_}, {"out", out_}}; }
  std::int64_t rows() const override { return rows_; }

  Expectations expect(const TensorSet& tensors) const override {
    const HostTensor& out = tensors.at("out");
    HostTensor expected(out.spec());
    for (std::int64_t column = 0; column < out_columns_; ++column) {
      const Element element = element_of(tensors.at("in"), column);
      for (std::int64_t row = 0; row < rows_; ++row) {
        const float value = element(row);
        // NaN payloads are unspecified: any NaN matches.
        const bool any = std::isnan(value) && std::isnan(number(out, row, column));
        store(any ? number(out, row, column) : value, row, column, expected);
      }
    }
    return {expect_bits(out, expected, {}, wrong())};
  }

 protected:
  // The elements of an output column, by row.
  using Element = std::function<float(std::int64_t row)>;
  virtual Element element_of(const HostTensor& in, std::int64_t column) const = 0;
  virtual const char* wrong() const = 0;

  const void *in_ = nullptr, *out_ = nullptr;
  Dtype in_dtype_ = Dtype::bf16, out_dtype_ = Dtype::bf16;
  std::int64_t rows_ = 0, in_columns_ = 1, out_columns_ = 0;
  std::uint64_t seed_ = 0;
};

class LinearMap final : public RowPlaceholder {
 public:
  std::unique_ptr<PlaceholderReference> with_rows(std::int64_t rows) const override {
    auto few = std::make_unique<LinearMap>(*this);
    few->rows_ = rows;
    return few;
  }
  explicit LinearMap(const plumb_linear_map_params& p) {
    in_ = p.in;
    out_ = p.out;
    in_dtype_ = dtype_of(p.in_format);
    out_dtype_ = dtype_of(p.out_format);
    rows_ = p.rows;
    in_columns_ = p.in_columns;
    out_columns_ = p.out_columns;
    seed_ = p.seed;
  }

 private:
  Element element_of(const HostTensor& in, std::int64_t column) const override {
    struct Term {
      std::int64_t from = 0;
      float factor = 0;
    };
    std::array<Term, 4> terms;
    for (std::size_t term = 0; term < terms.size(); ++term) {
      const std::uint64_t bits =
          mixed(seed_ + mixed(4 * static_cast<std::uint64_t>(column) + term));
      terms[term] = {static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(in_columns_)),
                     bits >> 63 != 0 ? -0.5F : 0.5F};
    }
    return [&in, terms](std::int64_t row) {
      float sum = 0;
      for (const Term& term : terms) sum += term.factor * number(in, row, term.from);
      return sum;
    };
  }
  const char* wrong() const override { return "is not a linear map of its input"; }
};

class SeededRows final : public RowPlaceholder {
 public:
  std::unique_ptr<PlaceholderReference> with_rows(std::int64_t rows) const override {
    auto few = std::make_unique<SeededRows>(*this);
    few->rows_ = rows;
    return few;
  }
  explicit SeededRows(const plumb_seeded_rows_params& p) {
    in_ = p.keys;
    out_ = p.out;
    in_dtype_ = Dtype::i64;
    rows_ = p.rows;
    out_columns_ = p.columns;
    seed_ = p.seed;
  }

 private:
  Element element_of(const HostTensor& in, std::int64_t column) const override {
    const std::uint64_t of_column = mixed(static_cast<std::uint64_t>(column) + 1);
    return [&in, of_column, seed = seed_](std::int64_t row) {
      const auto key = static_cast<std::uint64_t>(*in.row<std::int64_t>(row));
      const std::uint64_t bits = mixed(seed + mixed(key + of_column));
      std::int64_t sum = -131070;
      for (std::uint64_t rest = bits; rest != 0; rest >>= 16) sum += rest & 0xffff;
      return static_cast<float>(sum) / 32768;
    };
  }
  const char* wrong() const override { return "is not made of its keys"; }
};

class FillRows final : public PlaceholderReference {
 public:
  explicit FillRows(const plumb_fill_rows_params& p) : p_(p) {}

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"out", Dtype::u8, {p_.rows, p_.row_bytes}, {}, Role::output});
    return tensors;
  }
  std::vector<Binding> bindings() const override { return {{"out", p_.out}}; }
  Expectations expect(const TensorSet& tensors) const override {
    HostTensor expected(tensors.at("out").spec());
    std::memset(expected.bytes().data(), p_.value, expected.bytes().size());
    return {expect_bits(tensors.at("out"), expected, {}, "is not filled")};
  }

 private:
  plumb_fill_rows_params p_;
};

}  // namespace

bool is_placeholder(std::string_view op) {
#define PLUMB_IS_PLACEHOLDER(name) \
  if (op == #name) return true;
  PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_IS_PLACEHOLDER)
#undef PLUMB_IS_PLACEHOLDER
  return false;
}

std::unique_ptr<PlaceholderReference> make_placeholder_reference(const device::decode::Call& call) {
  if (call.op == "fill_rows") {
    return std::make_unique<FillRows>(*static_cast<const plumb_fill_rows_params*>(call.params));
  }
  if (call.op == "linear_map") {
    return std::make_unique<LinearMap>(*static_cast<const plumb_linear_map_params*>(call.params));
  }
  return std::make_unique<SeededRows>(*static_cast<const plumb_seeded_rows_params*>(call.params));
}

}  // namespace plumb::cases
