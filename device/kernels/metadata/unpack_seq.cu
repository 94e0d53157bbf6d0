// SPDX-License-Identifier: Apache-2.0
//
// unpack_seq: removes the padding of padded sequences. Block b takes sequence b; its threads share
// the elements of its rows. Legal launch: grid_x = sequences, any block of whole waves.
#include <plumb/ops/metadata.h>

#include "device/kernels/metadata/pack_seq.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

template <class Element>
PLUMB_KERNEL void unpack_seq_kernel(plumb_unpack_seq_params p) {
  const std::int64_t sequence = block_index_x();
  const std::int64_t first = first_token(p.lengths, sequence), length = p.lengths[sequence];
  const auto* x = static_cast<const Element*>(p.x) + sequence * p.max_length * p.columns;
  auto* out = static_cast<Element*>(p.out) + first * p.out_row_stride;
  for (std::int64_t i = thread_index(); i < length * p.columns; i += block_size()) {
    const std::int64_t row = i / p.columns, column = i % p.columns;
    out[row * p.out_row_stride + column] = x[i];
  }
}

plumb_status launch_unpack_seq(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_unpack_seq_params*>(params);
  if (!is_legal_packing(p, p.out_row_stride)) return PLUMB_INVALID_ARGUMENT;
  if (p.sequences == 0 || p.max_length == 0) return PLUMB_OK;
  if (p.sequences > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape shape = row_shape(p.sequences, p.max_length * p.columns, p.stream);
  switch (p.element_bytes) {
    case 1: return PLUMB_LAUNCH((unpack_seq_kernel<std::uint8_t>), shape, p.stream, p);
    case 2: return PLUMB_LAUNCH((unpack_seq_kernel<std::uint16_t>), shape, p.stream, p);
    default: return PLUMB_LAUNCH((unpack_seq_kernel<std::uint32_t>), shape, p.stream, p);
  }
}

}  // namespace

OpEntry unpack_seq() { return {"unpack_seq", launch_unpack_seq, kExactNumerics}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
