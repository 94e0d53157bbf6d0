// SPDX-License-Identifier: Apache-2.0
//
// Changes a tensor before a launch and restores it after the launch, as if the kernel ignored an
// input, misread special values of it, or did not write the end of an output.
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
  // Empty if no element changes, or if the tensor has more than 2^22 elements. `spec` has the
  // strides on the host and the places of the tensor's pieces.
  static std::optional<TensorPatch> of(const LaunchTensor& tensor, LazyKind kind,
                                       const TensorSpec& spec);

  // Change the tensor before the launch, restore it after the launch. Both run on a simulated
  // device. `patch` is a TensorPatch*.
  static void begin(const void* patch);
  static void end(const void* patch);

 private:
  std::byte* at(std::size_t element) const { return data_ + offsets_[element]; }
  std::int64_t integer(std::size_t element) const;
  void overwrite();
  void overwrite_special(std::size_t element);

  LazyKind kind_ = LazyKind::zeros;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;              // bytes per element
  std::size_t row_ = 0;               // elements per row
  std::vector<std::size_t> offsets_;  // byte offsets of the elements that change
  std::vector<std::byte> saved_;      // old bytes of these elements
};

}  // namespace plumb::cases
