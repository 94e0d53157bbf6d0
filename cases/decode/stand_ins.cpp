// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/stand_ins.h"

#include <bit>
#include <cmath>

#include "cases/mla_judge.h"
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

// Of linear_map or seeded_rows: "in" to "out".
class RowsStandIn final : public StandIn {
 public:
  explicit RowsStandIn(const device::decode::Call& call);
  TensorSet make_tensors() const override;
  std::vector<Binding> bindings() const override { return {{"in", in_}, {"out", out_}}; }
  std::vector<TensorReport> judge(const TensorSet& tensors) const override;

 private:
  float mapped(const TensorSet& tensors, std::int64_t row, std::int64_t column) const;
  float seeded(const TensorSet& tensors, std::int64_t row, std::int64_t column) const;

  bool maps_;  // else the rows are made from keys
  const void* in_;
  const void* out_;
  Dtype in_dtype_, out_dtype_;
  std::int64_t rows_, in_columns_, out_columns_;
  std::uint64_t seed_;
};

RowsStandIn::RowsStandIn(const device::decode::Call& call) : maps_(call.op == "linear_map") {
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

TensorSet RowsStandIn::make_tensors() const {
  TensorSet tensors;
  tensors.add({"in", in_dtype_, {rows_, in_columns_}});
  tensors.add({"out", out_dtype_, {rows_, out_columns_}, {}, Role::output});
  return tensors;
}

std::vector<TensorReport> RowsStandIn::judge(const TensorSet& tensors) const {
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

float RowsStandIn::mapped(const TensorSet& tensors, std::int64_t row, std::int64_t column) const {
  float sum = 0;
  for (std::int64_t term = 0; term < 4; ++term) {
    const std::uint64_t bits = mixed(seed_ + mixed(static_cast<std::uint64_t>(4 * column + term)));
    const auto from = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(in_columns_));
    const float half = number(tensors.at("in"), row, from) / 2;
    sum += bits >> 63 != 0 ? -half : half;
  }
  return sum;
}

float RowsStandIn::seeded(const TensorSet& tensors, std::int64_t row, std::int64_t column) const {
  const auto key = static_cast<std::uint64_t>(*tensors.at("in").row<std::int64_t>(row));
  const std::uint64_t bits =
      mixed(seed_ + mixed(key + mixed(static_cast<std::uint64_t>(column) + 1)));
  std::int64_t sum = -131070;
  for (std::uint64_t rest = bits; rest != 0; rest >>= 16) sum += rest & 0xffff;
  return static_cast<float>(sum) / 32768;
}

class PlanStandIn final : public StandIn {
 public:
  explicit PlanStandIn(const device::decode::Call& call)
      : p_(*static_cast<const plumb_tile_plan_params*>(call.params)) {}

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add({"indptr", Dtype::i32, {p_.rows + 1}});
    tensors.add({"tiles", Dtype::i32, {p_.plan.num_parts, kTileFields}, {}, Role::output});
    tensors.add({"num_splits", Dtype::i32, {p_.rows + 1}, {}, Role::output});
    return tensors;
  }
  std::vector<Binding> bindings() const override {
    return {{"indptr", p_.indptr}, {"tiles", p_.plan.tiles}, {"num_splits", p_.plan.num_splits}};
  }
  std::vector<TensorReport> judge(const TensorSet& tensors) const override {
    const auto* indptr = tensors.at("indptr").data<std::int32_t>();
    std::vector<reference::RequestBlocks> blocks;
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      blocks.push_back(
          reference::request_blocks(indptr[row + 1] - indptr[row], false, 0, p_.plan.block_n));
    }
    return judge_tile_plan(
        tensors, reference::make_tile_plan(blocks, p_.plan.num_parts, p_.plan.fixed_overhead),
        p_.rows);
  }

 private:
  plumb_tile_plan_params p_;
};

}  // namespace

bool is_stand_in(std::string_view op) {
  return op == "linear_map" || op == "seeded_rows" || op == "tile_plan";
}

std::unique_ptr<StandIn> make_stand_in(const device::decode::Call& call) {
  if (call.op == "tile_plan") return std::make_unique<PlanStandIn>(call);
  return std::make_unique<RowsStandIn>(call);
}

}  // namespace plumb::cases
