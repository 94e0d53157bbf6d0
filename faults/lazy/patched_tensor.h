// SPDX-License-Identifier: Apache-2.0
//
// Changes a tensor in front of a launch and restores it behind the launch, as if the kernel ignored
// an input or left out the end of an output.
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
  // Nothing: no element changes, or the tensor has more than 2^22 elements. `spec`
  // has the strides of the host and says where its pieces are.
  static std::optional<TensorPatch> of(const LaunchTensor& tensor, LazyKind kind,
                                       const TensorSpec& spec);

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
