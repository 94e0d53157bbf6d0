// SPDX-License-Identifier: Apache-2.0
//
// Eigen chooses the blocking of a matrix product, and with it the order of its sums, from the cache
// sizes of the machine. Fixed sizes make a product the same bits everywhere.
#pragma once

#include <Eigen/Core>

namespace plumb::reference {

inline void fix_eigen_blocking() {
  static const bool once = [] {
    Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 4 << 20);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace plumb::reference
