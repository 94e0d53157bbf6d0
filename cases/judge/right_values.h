// SPDX-License-Identifier: Apache-2.0
//
// Expected bits of the outputs of a call, collected from expectations (cases/judge/expectation.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "cases/judge/judge.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

class RightValues {
 public:
  // Starts with the stored bytes of these outputs. Elements without an expectation keep them.
  explicit RightValues(const TensorSet& judged);

  using BitsOf = std::function<std::uint64_t(std::int64_t row, std::int64_t column)>;
  // The right bits of each promised element of an output, or of a tensor whose origin
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
