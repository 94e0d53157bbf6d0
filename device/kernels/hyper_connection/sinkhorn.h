// SPDX-License-Identifier: Apache-2.0
//
// The Sinkhorn iteration on a 4 x 4 matrix of mixing logits. One thread does it in registers.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

enum class Axis { row, column };

// Entry i of a row or column of a row-major 4 x 4 matrix.
PLUMB_DEVICE inline float& entry_of(float* matrix, Axis axis, int line, int i) {
  return matrix[axis == Axis::row ? 4 * line + i : 4 * i + line];
}

PLUMB_DEVICE inline void normalise(float* matrix, Axis axis, float eps) {
  for (int line = 0; line < 4; ++line) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += entry_of(matrix, axis, line, i);
    sum += eps;
    for (int i = 0; i < 4; ++i) entry_of(matrix, axis, line, i) /= sum;
  }
}

PLUMB_DEVICE inline void softmax_of_row(float* row) {
  constexpr float kLog2E = 1.44269504F;
  float most = row[0];
  for (int k = 1; k < 4; ++k) most = row[k] > most ? row[k] : most;
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    row[k] = exp2_approx((row[k] - most) * kLog2E);
    sum += row[k];
  }
  for (int k = 0; k < 4; ++k) row[k] /= sum;
}

PLUMB_DEVICE inline void sinkhorn(float* matrix, int iterations, float eps) {
  for (int j = 0; j < 4; ++j) softmax_of_row(matrix + 4 * j);
  for (int i = 0; i < 16; ++i) matrix[i] += eps;
  normalise(matrix, Axis::column, eps);
  for (int step = 1; step < iterations; ++step) {
    normalise(matrix, Axis::row, eps);
    normalise(matrix, Axis::column, eps);
  }
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
