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
  // Sets the right bits of each promised element. `got` is an output, or a tensor whose origin
  // (tensor.h) is an output. Throws std::logic_error for any other tensor.
  void put(const HostTensor& got, const RowMask& promised, const ColumnRanges& columns,
           const BitsOf& bits_of);
  // Takes the bits of `expected` where they differ from the stored ones. Equal bits are skipped:
  // `expected` may be a copy of the stored bytes, if another verdict judges them.
  void put_bits(const HostTensor& got, const HostTensor& expected, const RowMask& promised,
                const ColumnRanges& columns);

  // The outputs with right bits wherever something was judged, and a mask of these bits.
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

// The bits of a number, rounded to nearest in a floating-point dtype.
std::uint64_t rounded_bits(Dtype dtype, double value);

}  // namespace plumb::cases
