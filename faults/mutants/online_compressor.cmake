# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the ops on online states. faults/CMakeLists.txt explains the arguments of plumb_mutant().
# FROM and TO are kernel text in brackets.

plumb_mutant(online_state_stored_at_127
  OP online_compress FILE compressor/online_compress.cu
  FROM [[write_row >= 0 && phase != 0]]
  TO [[write_row >= 0]]
  CASE online_compress/decode/eager
  SAYS "a row that no request owns changed"
  WHY "the state of a closed group is stored, and a reader that does not look at positions goes on with it")

plumb_mutant(online_state_not_reset
  OP online_compress FILE compressor/online_state.h
  FROM [[if (phase == 0) return]]
  TO [[if (phase < 0) return]]
  CASE online_compress/decode/eager
  SAYS "states.max: "
  WHY "a group goes on with the state of the group before it")

plumb_mutant(online_state_of_row_0
  OP online_compress FILE compressor/online_compress.cu
  FROM [[row < 0 ? fresh_channel() : load_channel(p.states, row,]]
  TO [[load_channel(p.states, row < 0 ? 0 : row,]]
  CASE online_compress/lost_rows/eager
  SAYS "states."
  WHY "a request without a state reads that of row 0")

plumb_mutant(online_state_not_read
  OP online_compress FILE compressor/online_compress.cu
  FROM [[return row < 0 ?]]
  TO [[return row < p.states.rows ?]]
  CASE online_compress/decode/eager
  SAYS "states."
  WHY "tokens are compressed without the state in front of them")

plumb_mutant(online_state_of_the_batch_row
  OP online_compress FILE compressor/online_compress.cu
  FROM [=[row = p.read_rows[request]]=]
  TO [[row = p.read_rows[request] < 0 ? -1 : request]]
  CASE online_compress/decode/eager
  SAYS "states."
  WHY "the state is that of the request's place in the batch")

plumb_mutant(online_state_stored_where_read
  OP online_compress FILE compressor/online_compress.cu
  FROM [=[write_row = p.write_rows[request]]=]
  TO [=[write_row = p.read_rows[request]]=]
  CASE online_compress/verification/eager
  SAYS "a row that no request owns changed"
  WHY "the new state replaces the state that was read")

plumb_mutant(online_state_of_skipped_rows_stored
  OP online_compress FILE compressor/online_compress.cu
  FROM [[write_row >= 0 &&]]
  TO [[write_row != -1 &&]]
  CASE online_compress/lost_rows/eager
  SAYS "guard zone damaged"
  WHY "negative rows other than -1 are written, in front of the states")

plumb_mutant(online_state_of_empty_requests
  OP online_compress FILE compressor/online_compress.cu
  FROM [[if (tokens.first >= tokens.end) return;]]
  TO [[]]
  CASE online_compress/short_prompts/eager
  SAYS "a row that no request owns changed"
  WHY "a request without tokens stores a state")

plumb_mutant(online_ape_left_out
  OP online_compress FILE compressor/online_state.h
  FROM [[ + p.ape[phase * p.head_dim + d];]]
  TO [[ + 0 * p.ape[phase * p.head_dim + d];]]
  CASE online_compress/decode/eager
  SAYS "states.max: "
  WHY "scores are used without ape")

plumb_mutant(online_ape_of_the_token
  OP online_compress FILE compressor/online_state.h
  FROM [[p.ape[phase *]]
  TO [[p.ape[token % kGroupPositions *]]
  CASE online_compress/prefill/eager
  SAYS "states.max: "
  WHY "the row of ape is that of the token's place in the call")

plumb_mutant(online_position_of_the_last_token
  OP online_compress FILE compressor/online_compress.cu
  FROM [[p.seq_lens[request] - (end - first)]]
  TO [[p.seq_lens[request] - 1]]
  CASE online_compress/verification/eager
  SAYS "states."
  WHY "positions count from the last token of the request")

plumb_mutant(online_out_at_the_first_position
  OP online_compress FILE compressor/online_compress.cu
  FROM [[if (phase == kGroupPositions - 1)]]
  TO [[if (phase == 0)]]
  CASE online_compress/prefill/eager
  SAYS "a row of a token that closes no group changed"
  WHY "the first token of a group emits, not the last one")

plumb_mutant(online_out_of_every_token
  OP online_compress FILE compressor/online_compress.cu
  FROM [[if (phase == kGroupPositions - 1)]]
  TO [[if (phase >= 0)]]
  CASE online_compress/decode/eager
  SAYS "a row of a token that closes no group changed"
  WHY "every token emits the mean of its group so far")

plumb_mutant(online_out_by_request
  OP online_compress FILE compressor/online_compress.cu
  FROM [[p.out[token *]]
  TO [[p.out[request *]]
  CASE online_compress/prefill/eager
  SAYS "out: "
  WHY "a closed group goes to the row of its request, as in decode")

plumb_mutant(online_sum_not_rescaled
  OP online_compress FILE compressor/online_state.h
  FROM [[state.sum * exp_of_difference(state.largest, largest)]]
  TO [[state.sum]]
  CASE online_compress/decode/eager
  SAYS "states.sum: "
  WHY "the sum keeps the weights under the old largest score")

plumb_mutant(online_mean_not_divided
  OP online_compress FILE compressor/online_state.h
  FROM [[(state.mean * before + kv * weight) / sum}]]
  TO [[state.mean * before + kv * weight}]]
  CASE online_compress/decode/eager
  SAYS "states.kv: "
  WHY "the state holds the weighted sum of kv, not the mean")

plumb_mutant(online_mean_taken_for_the_sum
  OP online_compress FILE compressor/online_state.h
  FROM [[(state.mean * before + kv]]
  TO [[(state.mean * exp_of_difference(state.largest, largest) + kv]]
  CASE online_compress/decode/eager
  SAYS "states.kv: "
  WHY "the stored mean is read as a weighted sum")

plumb_mutant(online_largest_of_the_last_token
  OP online_compress FILE compressor/online_state.h
  FROM [[score > state.largest ? score : state.largest]]
  TO [[score]]
  CASE online_compress/decode/eager
  SAYS "states."
  WHY "the state holds the last score instead of the largest one")

plumb_mutant(online_rows_packed_when_read
  OP online_compress FILE compressor/online_state.h
  FROM [[const float* const state = states.data + row * states.row_stride]]
  TO [[const float* const state = states.data + row * 3 * head_dim]]
  CASE online_compress/gaps/eager
  SAYS "states."
  WHY "rows of states are read as if they were contiguous")

plumb_mutant(online_row_offset_32_bits
  OP online_compress FILE compressor/online_state.h
  FROM [=[float* const state = states.data + row * states.row_stride;
  state[d]]=]
  TO [=[float* const state = states.data + static_cast<std::uint32_t>(row * states.row_stride);
  state[d]]=]
  CASE online_compress/far_rows/eager
  SAYS "states"
  WHY "the offset of a row wraps at 2^32 elements")

plumb_mutant(online_score_stride_of_kv
  OP online_compress FILE compressor/online_state.h
  FROM [=[p.score[token * p.score_row_stride + d]]=]
  TO [=[p.score[token * p.kv_row_stride + d]]=]
  CASE online_compress/gaps/eager
  SAYS "states."
  WHY "scores are read with the row stride of kv")

plumb_mutant(prefix_banks_from_0
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[row + (j + 1) * p.bank_rows]]
  TO [[row + j * p.bank_rows]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "a row that no request owns changed"
  WHY "the first token's state replaces the committed one")

plumb_mutant(prefix_closed_groups_stored
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[if (phase == kGroupPositions - 1) continue;]]
  TO [[]]
  CASE online_compress_prefix/eight_tokens/eager
  SAYS "a row that no request owns changed"
  WHY "the state of a closed group is stored too")

plumb_mutant(prefix_state_not_reset
  OP online_compress_prefix FILE compressor/online_state.h
  FROM [[if (phase == 0) return]]
  TO [[if (phase < 0) return]]
  CASE online_compress_prefix/eight_tokens/eager
  SAYS "states."
  WHY "a group goes on with the state of the group before it")

plumb_mutant(prefix_tokens_of_request_0
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[request * p.verify_tokens + j]]
  TO [[j]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "states."
  WHY "every request verifies the tokens of the first one")

plumb_mutant(prefix_tokens_interleaved
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[request * p.verify_tokens + j]]
  TO [[j * p.requests + request]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "states."
  WHY "tokens are read as [verify_tokens, requests]")

plumb_mutant(prefix_phase_of_the_first_token
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[(length + j) % kGroupPositions]]
  TO [[length % kGroupPositions]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "states"
  WHY "all tokens have the position of the first one")

plumb_mutant(prefix_positions_from_1
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[(length + j) % kGroupPositions]]
  TO [[(length + j + 1) % kGroupPositions]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "states"
  WHY "seq_lens is taken for the position of the last token in front")

plumb_mutant(prefix_row_of_the_batch
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[row + (j + 1) * p.bank_rows]]
  TO [[request + (j + 1) * p.bank_rows]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "states"
  WHY "banks are written at the request's place in the batch")

plumb_mutant(prefix_tokens_apart
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[state = appended_token(p, state,]]
  TO [[state = appended_token(p, load_channel(p.states, row, p.head_dim, d),]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "states."
  WHY "every bank holds the committed state and one token")

plumb_mutant(prefix_rows_of_other_banks
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[ || row >= p.bank_rows) return]]
  TO [[  || row < 0) return]]
  CASE online_compress_prefix/skipped/eager
  SAYS "online_compress_prefix"
  WHY "a request whose row is behind bank 0 is not skipped")

plumb_mutant(prefix_without_a_length
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[length < 0 || ]]
  TO [[]]
  CASE online_compress_prefix/short_prompts/eager
  SAYS "online_compress_prefix"
  WHY "a request without a length is not skipped")

plumb_mutant(prefix_ape_of_the_token
  OP online_compress_prefix FILE compressor/online_state.h
  FROM [[p.ape[phase *]]
  TO [[p.ape[token % kGroupPositions *]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "states.max: "
  WHY "the row of ape is that of the token's place in the call")

plumb_mutant(prefix_state_of_bank_1
  OP online_compress_prefix FILE compressor/online_compress_prefix.cu
  FROM [[load_channel(p.states, row, p.head_dim, d)]]
  TO [[load_channel(p.states, row + p.bank_rows, p.head_dim, d)]]
  CASE online_compress_prefix/four_tokens/eager
  SAYS "states."
  WHY "verification begins with the uncommitted state of the last one")

plumb_mutant(commit_wrong_bank
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[row + accepted * p.bank_rows]]
  TO [[row + (accepted - 1) * p.bank_rows]]
  CASE commit_online_states/four_tokens/eager
  SAYS "differs from the right bank"
  WHY "banks are counted from the first token, so that the last accepted token is lost")

plumb_mutant(commit_last_bank
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[row + accepted * p.bank_rows]]
  TO [[row + p.verify_tokens * p.bank_rows]]
  CASE commit_online_states/four_tokens/eager
  SAYS "differs from the right bank"
  WHY "the state after all tokens is committed, accepted or not")

plumb_mutant(commit_more_than_verified
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[more < p.verify_tokens ? more : p.verify_tokens]]
  TO [[more]]
  CASE commit_online_states/eight_tokens/eager
  SAYS "commit_online_states"
  WHY "more tokens are accepted than were verified")

plumb_mutant(commit_none_accepted
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[accepted <= 0 || closes ? 0 : accepted]]
  TO [[closes ? 0 : accepted < 0 ? 1 : accepted]]
  CASE commit_online_states/eight_tokens/eager
  SAYS "differs from the right bank"
  WHY "a sequence that became shorter commits the state after one token")

plumb_mutant(commit_closed_groups
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[closes ? 0 : accepted]]
  TO [[closes < 0 ? 0 : accepted]]
  CASE commit_online_states/eight_tokens/eager
  SAYS "differs from the right bank"
  WHY "a bank that was not written is committed where the accepted tokens end a group")

plumb_mutant(commit_end_of_the_sequence
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[(pending + accepted) % kGroupPositions]]
  TO [[length % kGroupPositions]]
  CASE commit_online_states/eight_tokens/eager
  SAYS "differs from the right bank"
  WHY "the end of a group is looked for at the present length, which may be larger")

plumb_mutant(commit_without_pending
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[if (pending < 0) return 0;]]
  TO [[]]
  CASE commit_online_states/eight_tokens/eager
  SAYS "differs from the right bank"
  WHY "a request that verified nothing commits a bank")

plumb_mutant(commit_pending_of_the_batch_row
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [=[p.pending_seq_lens[row]]=]
  TO [=[p.pending_seq_lens[request]]=]
  CASE commit_online_states/four_tokens/eager
  SAYS "differs from the right bank"
  WHY "pending lengths are looked up by the place in the batch")

plumb_mutant(commit_largest_scores_only
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[i < 3 * p.head_dim;]]
  TO [[i < p.head_dim;]]
  CASE commit_online_states/four_tokens/eager
  SAYS "differs from the right bank"
  WHY "sums and means of kv are not copied")

plumb_mutant(commit_rows_packed
  OP commit_online_states FILE compressor/commit_online_states.cu
  FROM [[states + (row + accepted * p.bank_rows) * p.states.row_stride]]
  TO [[states + (row + accepted * p.bank_rows) * 3 * p.head_dim]]
  CASE commit_online_states/gaps/eager
  SAYS "differs from the right bank"
  WHY "rows of states are read as if they were contiguous")
