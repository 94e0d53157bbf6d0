// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/metadata/seq_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

Dtype dtype_named(const Row& row) {
  const std::string_view word = row.word("dtype");
  if (word.empty()) return Dtype::f32;
  for (const Dtype dtype : {Dtype::u8, Dtype::bf16, Dtype::f32, Dtype::i32}) {
    if (word == name_of(dtype)) return dtype;
  }
  throw BadRow(row.where + ": dtype is u8, bf16, f32 or i32");
}

std::byte* bytes_of(HostTensor& tensor, std::int64_t row) {
  return tensor.bytes().data() +
         static_cast<std::size_t>(tensor.row_offset(row)) * size_of(tensor.spec().dtype);
}

std::size_t row_bytes(const HostTensor& tensor) {
  return static_cast<std::size_t>(tensor.columns()) * size_of(tensor.spec().dtype);
}

}  // namespace

SeqPackingShape::SeqPackingShape(const Row& row)
    : sequences(row.integer("sequences")),
      max_length(row.integer("max_length")),
      columns(row.integer("columns")),
      gap(row.integer("row_gap")),
      tokens(row.integer("tokens")),
      dtype(dtype_named(row)) {
  if (tokens < 0) tokens = sequences * max_length + row.integer("more_tokens");
}

TensorSpec SeqPackingShape::flat(std::string name) const {
  TensorSpec spec = table(std::move(name), tokens, columns, gap);
  spec.dtype = dtype;
  return spec;
}

TensorSpec SeqPackingShape::packed(std::string name) const {
  return {.name = std::move(name), .dtype = dtype, .shape = {sequences, max_length, columns}};
}

std::uint32_t SeqPackingShape::pad_bits() const {
  switch (dtype) {
    case Dtype::f32: return 0xff800000u;
    case Dtype::bf16: return 0xff80u;
    case Dtype::i32: return 0xffffffffu;
    default: return 0;
  }
}

double SeqPackingShape::cost() const {
  constexpr double kWaveSum = 5 * kShuffleCost;
  const double threads =
      static_cast<double>(std::clamp<std::int64_t>(max_length * columns, 32, 256));
  return static_cast<double>(sequences) *
         (threads * kWaveSum + 8 * static_cast<double>(max_length * columns));
}

void describe_seq_packing(OpDefinition& op) {
  op.parameters = {{"sequences", 4, 0, 65536, "padded sequences"},
                   {"max_length", 4, 0, 8192, "rows of a padded sequence"},
                   {"columns", 64, 1, 65536, "elements of a row"},
                   {"row_gap", 0, 0, 65536, "elements between two packed rows"},
                   {"more_tokens", 2, 0, 8192, "rows beyond those of full sequences"},
                   {"tokens", -1, -1, 1 << 20, "rows; -1: those of full sequences and more"}};
  op.word_parameters = {"dtype"};
}

std::vector<std::int64_t> fill_seq_lengths(const SeqPackingShape& shape, const Step& step,
                                           HostTensor& lengths) {
  auto chosen = live_lengths(step, shape.sequences, step.live, shape.max_length);
  store_integers(chosen, lengths);
  const std::int64_t needed = std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
  if (needed > shape.tokens) {
    throw BadRow(fmt::format("{} tokens: the sequences have {}", shape.tokens, needed));
  }
  return chosen;
}

void fill_bits(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::uint64_t stream = mix(seed, static_cast<std::uint64_t>(row));
    std::byte* to = bytes_of(tensor, row);
    for (std::size_t i = 0; i < row_bytes(tensor); ++i) {
      to[i] = static_cast<std::byte>(random_bits(stream, i));
    }
  }
}

void fill_dead_bits(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how) {
  if (how == DeadRows::foreign) return;
  const int byte = how == DeadRows::nan ? 0xff : how == DeadRows::zero ? 0 : 0x7f;
  for (std::int64_t row = begin; row < end; ++row) {
    std::memset(bytes_of(tensor, row), byte, row_bytes(tensor));
  }
}

void copy_row(const HostTensor& from, std::int64_t from_row, HostTensor& to, std::int64_t to_row) {
  const auto offset =
      static_cast<std::size_t>(from.row_offset(from_row)) * size_of(from.spec().dtype);
  std::memcpy(bytes_of(to, to_row), from.bytes().data() + offset, row_bytes(to));
}

}  // namespace plumb::cases
