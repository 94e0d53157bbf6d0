// SPDX-License-Identifier: Apache-2.0
//
// Eigen chooses the blocking of a matrix product, and so the order of its sums, from the cache
// sizes of the machine. Fixed cache sizes give the same bits on all machines.
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
