// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/misread_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kMostMisread = std::int64_t{1} << 18;

// Row and column of an element. Rows of all leading dimensions are counted together.
struct ReadingPlace {
  std::int64_t row = 0, column = 0;
};

// value + by, also at the ends of the type.
template <class Integer>
Integer moved(Integer value, int by) {
  return static_cast<Integer>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(by));
}

class Readings {
 public:
  explicit Readings(const HostTensor& input) : input_(input), name_(input.spec().name) {}

  std::vector<MisreadInput> all() {
    add_rows();
    add_columns();
    add_values();
    return std::move(all_);
  }

 private:
  bool is_integer() const {
    return input_.spec().dtype == Dtype::i32 || input_.spec().dtype == Dtype::i64;
  }

  // Reads the element at from(place) for the element at `place`.
  void add_places(const char* kind, const std::string& meaning,
                  const std::function<ReadingPlace(ReadingPlace)>& from) {
    HostTensor seen = input_;
    const std::size_t size = size_of(input_.spec().dtype);
    for (std::int64_t row = 0; row < input_.rows(); ++row) {
      for (std::int64_t column = 0; column < input_.columns(); ++column) {
        const ReadingPlace place = from({row, column});
        const std::int64_t to = input_.row_offset(row) + column;
        const std::int64_t at = input_.row_offset(place.row) + place.column;
        std::memcpy(seen.bytes().data() + static_cast<std::size_t>(to) * size,
                    input_.bytes().data() + static_cast<std::size_t>(at) * size, size);
      }
    }
    add(kind, meaning, std::move(seen));
  }

  template <class T>
  void add_each(const char* kind, const std::string& meaning,
                const std::function<T(T, std::int64_t column)>& change) {
    HostTensor seen = input_;
    for (std::int64_t row = 0; row < input_.rows(); ++row) {
      T* const elements = seen.row<T>(row);
      for (std::int64_t i = 0; i < input_.columns(); ++i) elements[i] = change(elements[i], i);
    }
    add(kind, meaning, std::move(seen));
  }

  void add(const char* kind, const std::string& meaning, HostTensor seen) {
    if (seen.bytes() == input_.bytes()) return;
    all_.push_back({fmt::format("{}.{}", name_, kind), meaning, std::move(seen), is_integer()});
  }

  void add_rows() {
    const std::int64_t last = input_.rows() - 1;
    if (last < 1 || input_.spec().sparse) return;
    add_places(
        "next_row", fmt::format("reads row r + 1 of {} for row r", name_),
        [&](ReadingPlace at) { return ReadingPlace{std::min(at.row + 1, last), at.column}; });
    add_places("previous_row", fmt::format("reads row r - 1 of {} for row r", name_),
               [](ReadingPlace at) {
                 return ReadingPlace{std::max<std::int64_t>(at.row - 1, 0), at.column};
               });
  }

  void add_columns() {
    const std::int64_t columns = input_.columns(), last = columns - 1, half = columns / 2;
    if (columns < 2) return;
    add_places(
        "next_column", fmt::format("reads column c + 1 of {} for column c", name_),
        [&](ReadingPlace at) { return ReadingPlace{at.row, std::min(at.column + 1, last)}; });
    add_places("previous_column", fmt::format("reads column c - 1 of {} for column c", name_),
               [](ReadingPlace at) {
                 return ReadingPlace{at.row, std::max<std::int64_t>(at.column - 1, 0)};
               });
    add_places("first_column", fmt::format("reads the first column of {} for every column", name_),
               [](ReadingPlace at) { return ReadingPlace{at.row, 0}; });
    add_transposed();
    if (columns % 2 != 0) return;
    add_places("halves_swapped", fmt::format("swaps the two halves of each row of {}", name_),
               [&](ReadingPlace at) { return ReadingPlace{at.row, (at.column + half) % columns}; });
    if (columns < 4) return;
    add_places("as_halves", fmt::format("takes the pairs of each row of {} for two halves", name_),
               [&](ReadingPlace at) {
                 return ReadingPlace{at.row, at.column % half * 2 + at.column / half};
               });
    add_places("as_pairs", fmt::format("takes the two halves of each row of {} for pairs", name_),
               [&](ReadingPlace at) {
                 return ReadingPlace{at.row, at.column % 2 * half + at.column / 2};
               });
  }

  // The last two dimensions, with the elements in the order of columns.
  void add_transposed() {
    const std::vector<std::int64_t>& shape = input_.spec().shape;
    const std::int64_t columns = input_.columns();
    const std::int64_t rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
    if (rows < 2 || input_.spec().sparse) return;
    add_places("transposed", fmt::format("reads {} column by column (transposed)", name_),
               [=](ReadingPlace at) {
                 const std::int64_t flat = at.column * rows + at.row % rows;
                 return ReadingPlace{at.row / rows * rows + flat / columns, flat % columns};
               });
  }

  void add_values() {
    switch (input_.spec().dtype) {
      case Dtype::bf16: add_floats<std::uint16_t>(0x8000, 0x3f80); break;
      case Dtype::f32:
        add_floats<std::uint32_t>(0x80000000, std::bit_cast<std::uint32_t>(1.0F));
        break;
      case Dtype::i32: add_integers<std::int32_t>(); break;
      case Dtype::i64:
        add_integers<std::int64_t>();
        add_as_int32();
        break;
      default: break;
    }
  }

  void add_one_more() {
    HostTensor seen = input_;
    for (std::int64_t row = 0; row < input_.rows(); ++row) {
      for (std::int64_t i = 0; i < input_.columns(); ++i) {
        const double value = input_.value(row, i) + 1;
        if (input_.spec().dtype == Dtype::bf16) {
          seen.row<std::uint16_t>(row)[i] = reference::encode_bf16(value);
        } else {
          seen.row<float>(row)[i] = static_cast<float>(value);
        }
      }
    }
    add("one_more", fmt::format("adds 1 to every element of {}", name_), std::move(seen));
  }

  template <class Bits>
  void add_floats(Bits sign, Bits one) {
    add_one_more();
    add_each<Bits>("ones", fmt::format("ignores {}: takes 1 for every element", name_),
                   [=](Bits, std::int64_t) { return one; });
    add_each<Bits>("negated", fmt::format("reads {} with the opposite sign", name_),
                   [=](Bits bits, std::int64_t) { return static_cast<Bits>(bits ^ sign); });
    const std::int64_t half = input_.columns() / 2;
    if (input_.columns() % 2 != 0) return;
    add_each<Bits>(
        "second_half_negated",
        fmt::format("reads the second half of each row of {} with the opposite sign", name_),
        [=](Bits bits, std::int64_t column) {
          return static_cast<Bits>(column < half ? bits : bits ^ sign);
        });
  }

  template <class Integer>
  void add_integers() {
    add_each<Integer>("one_more", fmt::format("adds 1 to every element of {}", name_),
                      [](Integer value, std::int64_t) { return moved(value, 1); });
    add_each<Integer>("one_less", fmt::format("subtracts 1 from every element of {}", name_),
                      [](Integer value, std::int64_t) { return moved(value, -1); });
  }

  // Element i is the i-th half of the elements' bytes.
  void add_as_int32() {
    HostTensor seen = input_;
    const std::vector<std::int64_t> values = packed<std::int64_t>(input_);
    std::int64_t at = 0;
    for (std::int64_t row = 0; row < input_.rows(); ++row) {
      for (std::int64_t column = 0; column < input_.columns(); ++column, ++at) {
        const auto whole = static_cast<std::uint64_t>(values[static_cast<std::size_t>(at / 2)]);
        const auto half = static_cast<std::uint32_t>(at % 2 == 0 ? whole : whole >> 32);
        seen.row<std::int64_t>(row)[column] = static_cast<std::int32_t>(half);
      }
    }
    add("as_int32", fmt::format("reads {}, which is int64, as int32", name_), std::move(seen));
  }

  const HostTensor& input_;
  const std::string& name_;
  std::vector<MisreadInput> all_;
};

}  // namespace

std::vector<MisreadInput> misread_inputs(const HostTensor& input) {
  const TensorSpec& spec = input.spec();
  if (spec.role != Role::input || spec.shape.empty()) return {};
  if (input.elements() == 0 || input.elements() > kMostMisread) return {};
  return Readings(input).all();
}

}  // namespace plumb::cases
