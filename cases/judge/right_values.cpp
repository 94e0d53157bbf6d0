// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/right_values.h"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

// Maps elements of a judged tensor to bit positions in the output that it is part of.
class Places {
 public:
  explicit Places(const HostTensor& got)
      : got_(got), width_(8 * static_cast<int>(size_of(got.spec().dtype))) {
    if (const Origin* origin = got.spec().origin.get(); origin != nullptr && origin->width != 0) {
      width_ = origin->width;
    }
  }

  std::int64_t bit(std::int64_t row, std::int64_t column) const {
    const auto& origin = got_.spec().origin;
    if (origin) return origin->bit(row, column);
    return (got_.row_offset(row) + column) * width_;
  }
  int width() const { return width_; }
  std::uint64_t encode(std::uint64_t bits) const {
    const auto& origin = got_.spec().origin;
    return origin && origin->encode != nullptr ? origin->encode(bits) : bits;
  }

 private:
  const HostTensor& got_;
  int width_;
};

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

// Writes `width` bits: whole bytes, or a part of one byte.
void store(Bytes& to, std::int64_t first_bit, int width, std::uint64_t bits) {
  auto* const at = to.data() + first_bit / 8;
  if (width % 8 == 0) {
    std::memcpy(at, &bits, static_cast<std::size_t>(width) / 8);
    return;
  }
  const auto shift = static_cast<unsigned>(first_bit % 8);
  const unsigned mask = ((1U << static_cast<unsigned>(width)) - 1U) << shift;
  const unsigned kept = std::to_integer<unsigned>(*at) & ~mask;
  *at = static_cast<std::byte>(kept | (static_cast<unsigned>(bits << shift) & mask));
}

}  // namespace

RightValues::RightValues(const TensorSet& judged) {
  for (const HostTensor& tensor : judged.all()) {
    if (tensor.spec().role == Role::input) continue;
    promised_[tensor.spec().name] = values_.add(tensor).bytes();
    std::memset(promised_[tensor.spec().name].data(), 0, tensor.bytes().size());
  }
}

RightValues::Output RightValues::output_of(const HostTensor& got) {
  const std::string& name = got.spec().origin ? got.spec().origin->tensor : got.spec().name;
  const auto found = promised_.find(name);
  if (found == promised_.end()) {
    throw std::logic_error(got.spec().name + " is a part of an unknown output");
  }
  return {values_.at(name).bytes(), found->second};
}

void RightValues::put(const HostTensor& got, const RowMask& promised, const ColumnRanges& columns,
                      const BitsOf& bits_of) {
  const Places places(got);
  const Output output = output_of(got);
  for (std::int64_t row = 0; row < got.rows(); ++row) {
    if (!is_promised(promised, row)) continue;
    const ColumnRange range = cases::columns_of(columns, got, row);
    for (std::int64_t column = range.begin; column < range.end; ++column) {
      const std::int64_t place = places.bit(row, column);
      store(output.promised, place, places.width(), kAllBits);
      store(output.values, place, places.width(), places.encode(bits_of(row, column)));
    }
  }
}

void RightValues::put_bits(const HostTensor& got, const HostTensor& expected,
                           const RowMask& promised, const ColumnRanges& columns) {
  const std::size_t size = size_of(got.spec().dtype);
  const Places places(got);
  const Output output = output_of(got);
  for (std::int64_t row = 0; row < got.rows(); ++row) {
    const ColumnRange range = cases::columns_of(columns, got, row);
    if (!is_promised(promised, row) || range.begin == range.end) continue;
    // A row of the judged tensor is also contiguous in its origin, so bytes can be copied.
    const auto first = static_cast<std::size_t>(places.bit(row, range.begin)) / 8;
    const std::size_t bytes = static_cast<std::size_t>(range.end - range.begin) * size;
    const auto from = [&](const HostTensor& tensor) {
      return tensor.bytes().data() +
             static_cast<std::size_t>(tensor.row_offset(row) + range.begin) * size;
    };
    std::memset(output.promised.data() + first, 0xff, bytes);
    const std::byte *stored = from(got), *right = from(expected);
    if (std::memcmp(stored, right, bytes) == 0) continue;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (stored[i] != right[i]) output.values[first + i] = right[i];
    }
  }
}

std::uint64_t rounded_bits(Dtype dtype, double value) {
  if (dtype == Dtype::bf16) return reference::encode_bf16(value);
  if (dtype == Dtype::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  throw std::invalid_argument("not a floating-point type: " + std::string(name_of(dtype)));
}

}  // namespace plumb::cases
