// SPDX-License-Identifier: Apache-2.0
//
// What is right, collected from the judges while they look for what is wrong. A Problem only
// judges; but every judge knows, of each element that it compares, the value that belongs there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "cases/judge/judge.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

// While it lives, every verdict of this thread adds the right bits of what it judged. One at a
// time.
class RightValues {
 public:
  // Of these tensors, which are being judged.
  explicit RightValues(const TensorSet& judged);
  ~RightValues();
  RightValues(const RightValues&) = delete;
  RightValues& operator=(const RightValues&) = delete;

  // nullptr: nobody collects.
  static RightValues* active();

  using BitsOf = std::function<std::uint64_t(std::int64_t row, std::int64_t column)>;
  // The right bits of each element of what a verdict compared: an output, or a tensor whose origin
  // (tensor.h) is one. Throws std::logic_error for any other.
  void put(const HostTensor& got, const RowMask& promised, const ColumnRanges& columns,
           const BitsOf& bits_of);
  // Those of `expected` where other ones are stored. What is stored may be expected because another
  // verdict looks at it.
  void put_bits(const HostTensor& got, const HostTensor& expected, const RowMask& promised,
                const ColumnRanges& columns);

  // The outputs, right wherever something was judged, and which of their bits that are.
  TensorSet& values() { return values_; }
  std::map<std::string, Bytes, std::less<>>& promised() { return promised_; }

 private:
  struct Output {
    Bytes &values, &promised;
  };
  Output output_of(const HostTensor& got);

  TensorSet values_;
  std::map<std::string, Bytes, std::less<>> promised_;
};

// A number in a floating-point tensor's type, rounded to nearest.
std::uint64_t rounded_bits(Dtype dtype, double value);

}  // namespace plumb::cases
