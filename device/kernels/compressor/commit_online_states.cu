// SPDX-License-Identifier: Apache-2.0
//
// commit_online_states: block r takes request r, thread i the elements i, i + block, ... of its
// state. Elements are copied as bits. Legal launch: grid_x = requests, any block.
#include "device/kernels/compressor/online_state.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using CommitStates = plumb_commit_online_states_params;

// Number of accepted tokens whose state is committed. 0: the committed state stays as it is.
PLUMB_DEVICE std::int64_t committed_tokens(const CommitStates& p, std::int64_t pending,
                                           std::int64_t length) {
  if (pending < 0) return 0;
  const std::int64_t more = length - pending;
  const std::int64_t accepted = more < p.verify_tokens ? more : p.verify_tokens;
  // The next group begins without a state.
  const bool closes = (pending + accepted) % kGroupPositions == 0;
  return accepted <= 0 || closes ? 0 : accepted;
}

PLUMB_KERNEL void commit_online_states_kernel(CommitStates p) {
  const std::int64_t request = block_index_x(), row = p.request_rows[request];
  if (row < 0 || row >= p.bank_rows) return;
  const std::int64_t accepted = committed_tokens(p, p.pending_seq_lens[row], p.seq_lens[request]);
  if (accepted == 0) return;
  auto* const states = reinterpret_cast<std::uint32_t*>(p.states.data);
  const std::uint32_t* const from = states + (row + accepted * p.bank_rows) * p.states.row_stride;
  std::uint32_t* const to = states + row * p.states.row_stride;
  for (std::int64_t i = thread_index(); i < 3 * p.head_dim; i += block_size()) to[i] = from[i];
}

bool is_legal_commit(const CommitStates& p) {
  if (!has_legal_banks(p)) return false;
  if (p.requests == 0) return true;
  return p.seq_lens && p.request_rows && p.pending_seq_lens && p.states.data;
}

plumb_status launch_commit_online_states(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const CommitStates*>(params);
  if (!is_legal_commit(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.requests == 0) return PLUMB_OK;
  if (p.requests > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(commit_online_states_kernel, row_shape(p.requests, 3 * p.head_dim, p.stream),
                      p.stream, p);
}

}  // namespace

OpEntry commit_online_states() {
  return {"commit_online_states", launch_commit_online_states, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
