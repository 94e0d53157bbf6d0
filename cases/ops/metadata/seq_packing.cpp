// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/metadata/seq_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

std::byte* bytes_of(HostTensor& tensor, std::int64_t row) {
  return tensor.bytes().data() +
         static_cast<std::size_t>(tensor.row_offset(row)) * size_of(tensor.spec().dtype);
}

std::size_t row_bytes(const HostTensor& tensor) {
  return static_cast<std::size_t>(tensor.columns()) * size_of(tensor.spec().dtype);
}

}  // namespace

WordChoices element_bytes() { return {"dtype", {{"f32", 4}, {"u8", 1}, {"bf16", 2}, {"i32", 4}}}; }

Formula packed_dtype() {
  return computed("dtype", [](const FormulaValues& values) {
    const std::string_view word = values.row->word("dtype");
    for (const Dtype dtype : {Dtype::u8, Dtype::bf16, Dtype::i32}) {
      if (word == name_of(dtype)) return static_cast<std::int64_t>(dtype);
    }
    return static_cast<std::int64_t>(Dtype::f32);
  });
}

void describe_seq_packing(OpDefinition& op) {
  op.parameters = {{"sequences", 4, 0, 65536, "padded sequences"},
                   {"max_length", 4, 0, 8192, "rows of a padded sequence"},
                   {"columns", 64, 1, 65536, "elements of a row"},
                   {"row_gap", 0, 0, 65536, "elements between two packed rows"},
                   {"more_tokens", 2, 0, 8192, "rows beyond those of full sequences"},
                   {"tokens", -1, -1, 1 << 20, "rows; -1: those of full sequences and more"}};
  op.word_parameters = {{"dtype", {"f32", "bf16", "i32", "u8"}, "of the elements"}};
}

std::vector<std::int64_t> fill_seq_lengths(std::int64_t max_length, std::int64_t tokens,
                                           const Step& step, HostTensor& lengths) {
  auto chosen = live_lengths(step, lengths.rows(), step.live, max_length);
  store_integers(chosen, lengths);
  const std::int64_t needed = std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
  if (needed > tokens) {
    throw BadRow(fmt::format("{} tokens: the sequences have {}", tokens, needed));
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
  if (from_row >= from.rows() || to_row >= to.rows()) {
    throw BadRow("the lengths have more tokens than the tensor has rows");
  }
  const auto offset =
      static_cast<std::size_t>(from.row_offset(from_row)) * size_of(from.spec().dtype);
  std::memcpy(bytes_of(to, to_row), from.bytes().data() + offset, row_bytes(to));
}

double seq_packing_cost(std::int64_t sequences, std::int64_t elements) {
  constexpr double kWaveSum = 5 * kShuffleCost;
  const auto threads = static_cast<double>(std::clamp<std::int64_t>(elements, 32, 256));
  return static_cast<double>(sequences) * (threads * kWaveSum + 8 * static_cast<double>(elements));
}

}  // namespace plumb::cases
