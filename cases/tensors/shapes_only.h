// SPDX-License-Identifier: Apache-2.0
//
// Tensors for callers that need only their specs: memory for their bytes takes time to clear.
#pragma once

namespace plumb::cases {

// While one lives, new tensors of this thread have no bytes.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;

 private:
  bool before_;
};

}  // namespace plumb::cases
