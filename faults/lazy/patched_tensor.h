// SPDX-License-Identifier: Apache-2.0
//
// A tensor that is changed in front of a launch and put back behind it: what a kernel does that
// ignores an input, or does not write the end of an output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cases/tables/launch_arguments.h"
#include "faults/lazy/lazy_kernels.h"

namespace plumb::cases {

class TensorPatch {
 public:
  // Nothing: the tensor is empty, nothing of it changes, or it is larger than a sweep can afford.
  // `rows`: where its rows lie, if not one behind the other, in strides of the first dimension.
  static std::optional<TensorPatch> of(const LaunchTensor& tensor, LazyKind kind,
                                       const std::vector<std::int64_t>& rows);

  // Run on a simulated device, `patch` a TensorPatch*.
  static void begin(const void* patch);
  static void end(const void* patch);

 private:
  std::byte* at(std::size_t element) const { return data_ + offsets_[element]; }
  void overwrite();

  LazyKind kind_ = LazyKind::zeros;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;              // bytes of an element
  std::size_t row_ = 0;               // elements of a row
  std::vector<std::size_t> offsets_;  // bytes, of the elements that change
  std::vector<std::byte> saved_;      // their bytes
};

}  // namespace plumb::cases
