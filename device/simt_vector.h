// SPDX-License-Identifier: Apache-2.0
//
// The unit that a thread loads or stores in one access (load_vector, store_vector of
// device/simt.h).
#pragma once

namespace plumb::device {

template <typename T, int bytes = 16>
struct alignas(bytes) Vector {
  static constexpr int kBytes = bytes, kCount = bytes / static_cast<int>(sizeof(T));
  T at[kCount];
};

}  // namespace plumb::device
