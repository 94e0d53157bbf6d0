// SPDX-License-Identifier: Apache-2.0
//
// The hash from which the matrices and rows of device/kernels/placeholders/placeholder_kernels.h
// are made.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// A 64-bit finaliser: every bit of the input influences every bit of the result.
PLUMB_DEVICE std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
