// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/stand_ins.h"

#include <bit>
#include <cmath>

#include "device/decode/stand_ins.h"

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

}  // namespace

StandIn::StandIn(const device::decode::Call& call) : maps_(call.op == "linear_map") {
  if (maps_) {
    const auto& p = *static_cast<const plumb_linear_map_params*>(call.params);
    in_ = p.in;
    out_ = p.out;
    in_dtype_ = dtype_of(p.in_format);
    out_dtype_ = dtype_of(p.out_format);
    rows_ = p.rows;
    in_columns_ = p.in_columns;
    out_columns_ = p.out_columns;
    seed_ = p.seed;
    return;
  }
  const auto& p = *static_cast<const plumb_seeded_rows_params*>(call.params);
  in_ = p.keys;
  out_ = p.out;
  in_dtype_ = Dtype::i64;
  out_dtype_ = Dtype::bf16;
  rows_ = p.rows;
  in_columns_ = 1;
  out_columns_ = p.columns;
  seed_ = p.seed;
}

TensorSet StandIn::make_tensors() const {
  TensorSet tensors;
  tensors.add({"in", in_dtype_, {rows_, in_columns_}});
  tensors.add({"out", out_dtype_, {rows_, out_columns_}, {}, Role::output});
  return tensors;
}

std::vector<Binding> StandIn::bindings() const { return {{"in", in_}, {"out", out_}}; }

std::vector<TensorReport> StandIn::judge(const TensorSet& tensors) const {
  HostTensor out = tensors.at("out");
  HostTensor expected(out.spec());
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int64_t column = 0; column < out_columns_; ++column) {
      const float value = maps_ ? mapped(tensors, row, column) : seeded(tensors, row, column);
      // Which NaN comes of a sum with one is nobody's promise.
      const bool any = std::isnan(value) && std::isnan(number(out, row, column));
      store(any ? number(out, row, column) : value, row, column, expected);
    }
  }
  return {judge_bits(out, expected, {},
                     maps_ ? "is no linear map of its input" : "is not made of its keys")};
}

float StandIn::mapped(const TensorSet& tensors, std::int64_t row, std::int64_t column) const {
  float sum = 0;
  for (std::int64_t term = 0; term < 4; ++term) {
    const std::uint64_t bits = mixed(seed_ + mixed(static_cast<std::uint64_t>(4 * column + term)));
    const auto from = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(in_columns_));
    const float half = number(tensors.at("in"), row, from) / 2;
    sum += bits >> 63 != 0 ? -half : half;
  }
  return sum;
}

float StandIn::seeded(const TensorSet& tensors, std::int64_t row, std::int64_t column) const {
  const auto key = static_cast<std::uint64_t>(*tensors.at("in").row<std::int64_t>(row));
  const std::uint64_t bits =
      mixed(seed_ + mixed(key + mixed(static_cast<std::uint64_t>(column) + 1)));
  std::int64_t sum = -131070;
  for (std::uint64_t rest = bits; rest != 0; rest >>= 16) sum += rest & 0xffff;
  return static_cast<float>(sum) / 32768;
}

}  // namespace plumb::cases
