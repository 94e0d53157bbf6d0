# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(mqa_logits_relu_after_weight
  OP fp8_mqa_logits FILE indexer/mqa_logits.h
  FROM [[query.weights[head] * (score < 0 ? 0 : score);]]
  TO [[query.weights[head] * score < 0 ? 0 : query.weights[head] * score;]]
  CASE fp8_mqa_logits/k512_around_k/eager
  SAYS "3 of 3 rows (rows 0-2)"
  WHY "the ReLU comes after the head weight: heads with negative weights count as 0")

plumb_mutant(mqa_logits_relu_lost
  OP fp8_paged_mqa_logits FILE indexer/mqa_logits.h
  FROM [[(score < 0 ? 0 : score);]]
  TO [[score;]]
  CASE fp8_paged_mqa_logits/k512_around_k/eager
  SAYS "3 of 3 rows (rows 0-2)"
  WHY "the ReLU of each head is missing (vLLM #50455)")

plumb_mutant(mqa_logits_weight_of_next_head
  OP fp8_mqa_logits FILE indexer/mqa_logits.h
  FROM [[query.weights[head] *]]
  TO [[query.weights[(head + 1) % query.heads] *]]
  CASE fp8_mqa_logits/k512_around_k/eager
  SAYS "3 of 3 rows (rows 0-2)"
  WHY "each head has the weight of the next one")

plumb_mutant(mqa_logits_start_not_clamped
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[const std::int64_t start = clamp_key(p.starts[row], p.keys);]]
  TO [[const std::int64_t start = p.starts[row];]]
  CASE fp8_mqa_logits/row_local_beyond_all_keys/eager
  SAYS "elements beyond their bound in 2 of 4 rows (rows 2-3)"
  WHY "a start below 0 is not clamped, and columns of compressed logits count from it")

plumb_mutant(mqa_logits_end_clamped_early
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[return key < 0 ? 0 : key > keys ? keys : key;]]
  TO [[return key < 0 ? 0 : key >= keys ? keys - 1 : key;]]
  CASE fp8_mqa_logits/k512_around_k/eager
  SAYS "1 element beyond its bound in 1 of 3 rows (row 2); worst [2, 519]"
  WHY "an end equal to the number of keys is cut by one: the last key is lost")

plumb_mutant(mqa_logits_global_columns
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[p.max_seqlen_k > 0 ? start : 0;]]
  TO [[p.max_seqlen_k > 0 ? 0 : 0;]]
  CASE fp8_mqa_logits/row_local/eager
  SAYS "4 of 4 rows (rows 0-3)"
  WHY "compressed logits are stored at columns of all keys instead of the row's own")

plumb_mutant(mqa_logits_not_cleaned
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[  if (empty && !p.clean_logits) return;]]
  TO [[  if (empty) return;]]
  CASE fp8_mqa_logits/two_requests_clean/eager
  SAYS "non-finite elements in 3 of 3 rows (rows 0-2)"
  WHY "tiles that no window touches are not set to -inf")

plumb_mutant(mqa_logits_one_dialect
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[p.k + key * p.dim, kLogitsTile, dim, p.k_dialect,]]
  TO [[p.k + key * p.dim, kLogitsTile, dim, p.q_dialect,]]
  CASE fp8_mqa_logits/dialects_mixed/eager
  SAYS "3 of 3 rows (rows 0-2)"
  WHY "keys are read in the dialect of the queries (vLLM #42893)")

plumb_mutant(mqa_logits_minus_zero_is_nan
  OP fp8_paged_mqa_logits FILE indexer/mqa_logits.h
  FROM [[key[d] = decode_e4m3(codes[d / kLogitsTile * tile_stride + d % kLogitsTile], dialect);]]
  TO [[const std::uint8_t code = codes[d / kLogitsTile * tile_stride + d % kLogitsTile];
    key[d] = decode_e4m3(code, code == 0x80 ? PLUMB_E4M3FNUZ : dialect);]]
  CASE fp8_paged_mqa_logits/fn_cache/eager
  SAYS "non-finite elements in 2 of 2 rows (rows 0-1)"
  WHY "the byte of -0 is taken for the NaN of the other dialect (sglang #28455)")

plumb_mutant(paged_mqa_logits_interleaved_scales
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[reinterpret_cast<const float*>(block + page * p.dim);]]
  TO [[reinterpret_cast<const float*>(block + token * (p.dim + 4) + p.dim) - token;]]
  CASE fp8_paged_mqa_logits/k512_around_k/eager
  SAYS "3 of 3 rows (rows 0-2)"
  WHY "a token's scale is read behind its own codes instead of behind those of the block (vLLM #52109)")

plumb_mutant(paged_mqa_logits_scale_of_first_token
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[scales[token] *]]
  TO [[scales[0] *]]
  CASE fp8_paged_mqa_logits/k512_around_k/eager
  SAYS "3 of 3 rows (rows 0-2)"
  WHY "all tokens of a block have the scale of the first one")

plumb_mutant(paged_mqa_logits_one_length_per_request
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[if (p.context_lens_dims == 2) return lengths[query];]]
  TO [[if (p.context_lens_dims == 2) return lengths[0];]]
  CASE fp8_paged_mqa_logits/next_n_2/eager
  SAYS "3 of 6 rows (rows 1, 3, 5)"
  WHY "all next_n rows of a request have the length of the first row")

plumb_mutant(paged_mqa_logits_shuffled_as_planar
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[p.shuffled && page > 1;]]
  TO [[p.shuffled && page < 1;]]
  CASE fp8_paged_mqa_logits/page64_shuffled/eager
  SAYS "3 of 3 rows (rows 0-2)"
  WHY "the shuffled layout is read as the planar one")

plumb_mutant(paged_mqa_logits_offset_of_32_bits
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[p.cache.data + number * p.cache.block_stride_bytes;]]
  TO [[p.cache.data + static_cast<std::uint32_t>(number * p.cache.block_stride_bytes);]]
  CASE fp8_paged_mqa_logits/far_blocks/eager
  SAYS "2 of 2 rows (rows 0-1)"
  WHY "the offset of a block is cut to 32 bits (aiter #4774)")

plumb_mutant(paged_mqa_logits_not_cleaned
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[*logit_of(p, row, column) = minus_infinity();]]
  TO [[return;]]
  CASE fp8_paged_mqa_logits/next_n_3_clean/eager
  SAYS "non-finite elements in 9 of 9 rows (rows 0-8)"
  WHY "columns behind the length are not set to -inf")

plumb_mutant(paged_mqa_logits_end_of_slot_skipped
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[next[1] < own ? next[1] : own;]]
  TO [[next[1] < own ? 0 : own;]]
  CASE fp8_paged_mqa_logits/schedule_shared_request/eager
  SAYS "logits: "
  WHY "a slot leaves out the segments in front of its end where the next slot has the same atom"
  DECODE)

plumb_mutant(paged_mqa_logits_slot_of_first_row
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[length_of(p, request * p.next_n + p.next_n - 1)]]
  TO [[length_of(p, request * p.next_n)]]
  CASE fp8_paged_mqa_logits/schedule_two_rows/eager
  SAYS "logits: "
  WHY "an atom has as many segments as its first query row needs")

plumb_mutant(paged_mqa_logits_first_row_of_atom
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[const std::int64_t rows = p.next_n / p.atoms,]]
  TO [[const std::int64_t rows = 1,]]
  CASE fp8_paged_mqa_logits/schedule_two_rows/eager
  SAYS "logits: "
  WHY "an atom has one query row, however many its request has")

plumb_mutant(indexer_q_sine_of_other_sign
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[first ? own * cosine - other * sine : own * cosine + other * sine;]]
  TO [[first ? own * cosine + other * sine : own * cosine - other * sine;]]
  CASE indexer_q_rope_quant/v4/eager
  SAYS "q_out: 128 of 192 rows (rows 64-191)"
  WHY "the sine has the wrong sign: RoPE turns the other way")

plumb_mutant(indexer_q_pairs_of_the_other_kind
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[p.rope_pairs == PLUMB_ROPE_INTERLEAVED;]]
  TO [[true;]]
  CASE indexer_q_rope_quant/v32/eager
  SAYS "q_out: 128 of 192 rows (rows 64-191)"
  WHY "neighbours are paired where dimensions i and i + 32 are declared")

plumb_mutant(indexer_q_last_dimensions_turned
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[const int i = d - static_cast<int>(p.rope_offset),]]
  TO [[const int i = d - static_cast<int>(p.dim - p.rope_dim),]]
  CASE indexer_q_rope_quant/v32/eager
  SAYS "q_out: 128 of 192 rows (rows 64-191)"
  WHY "the last 64 dimensions are rotated instead of the first 64")

plumb_mutant(indexer_q_cosine_and_sine_swapped
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[cosine = cos_sin[pair], sine = cos_sin[half + pair];]]
  TO [[cosine = cos_sin[half + pair], sine = cos_sin[pair];]]
  CASE indexer_q_rope_quant/one_token/eager
  SAYS "q_out: 64 of 64 rows (rows 0-63)"
  WHY "the table is read as sines, then cosines")

plumb_mutant(indexer_q_transform_adds_only
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[values[i] = group_lane() & distance ? other - values[i] : values[i] + other;]]
  TO [[values[i] = values[i] + other;]]
  CASE indexer_q_rope_quant/hadamard/eager
  SAYS "q_out: "
  WHY "the Hadamard transform adds neighbouring dimensions and never subtracts them")

plumb_mutant(indexer_q_scale_truncated
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[decode_ue8m0(encode_ue8m0(ratio)) :]]
  TO [[bits_float(float_bits(ratio) & 0x7f800000U) :]]
  CASE indexer_q_rope_quant/v4/eager
  SAYS "elements beyond their bound in 3 of 3 rows (rows 0-2)"
  WHY "the exponent of the scale is truncated instead of rounded up")

plumb_mutant(indexer_q_not_rounded_before_amax
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[return load_bf16(store_bf16(turned));]]
  TO [[return turned;]]
  CASE indexer_q_rope_quant/all_dimensions/eager
  SAYS "q_out: 46 of 64 rows (rows 16-22, 25-63) wrong"
  WHY "rotated values are not rounded to bf16 before amax is taken")

plumb_mutant(indexer_q_scale_always_pow2
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[pow2 ? decode_ue8m0]]
  TO [[true ? decode_ue8m0]]
  CASE indexer_q_rope_quant/sglang/eager
  SAYS "elements beyond their bound in 4 of 4 rows (rows 0-3)"
  WHY "the scale is rounded up to a power of two where plain fp32 is declared")

plumb_mutant(indexer_q_scale_left_out
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[load_bf16(p.weights[index]) * scale * p.softmax_scale]]
  TO [[load_bf16(p.weights[index]) * p.softmax_scale]]
  CASE indexer_q_rope_quant/v32/eager
  SAYS "elements beyond their bound in 3 of 3 rows (rows 0-2)"
  WHY "the output weight is not multiplied by the scale of its head")

plumb_mutant(gather_keys_clears_rows_behind
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[if (request < 0) return;]]
  TO [[if (request < 0) {
    p.k[key * p.k_row_stride] = 0;
    return;
  }]]
  CASE cp_gather_indexer_k_quant_cache/upper_bound/eager
  SAYS "every wrong element is zero"
  WHY "output rows that belong to no request are written: they may belong to another chunk")

plumb_mutant(gather_keys_empty_request_taken
  OP cp_gather_indexer_k_quant_cache FILE block_table.h
  FROM [[query_start_loc[0] <= token;]]
  TO [[query_start_loc[0] < token;]]
  CASE cp_gather_indexer_k_quant_cache/many_requests/eager
  SAYS "k: wrong in "
  WHY "the first key of a request counts as a key of the request before it (vllm #40654)")

plumb_mutant(gather_keys_block_offset_32_bits
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[block * p.cache.block_stride_bytes;]]
  TO [[static_cast<std::uint32_t>(block * p.cache.block_stride_bytes);]]
  CASE cp_gather_indexer_k_quant_cache/far_blocks/eager
  SAYS "k: wrong in "
  WHY "offsets of blocks wrap at 2^32 bytes")

plumb_mutant(gather_keys_dense_blocks
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[block * p.cache.block_stride_bytes;]]
  TO [[block * page * (p.head_dim + 4 * (p.head_dim / p.quant_block_size));]]
  CASE cp_gather_indexer_k_quant_cache/v4_block/eager
  SAYS "k: wrong in "
  WHY "the block stride is taken to be the size of its keys, without padding")

plumb_mutant(gather_keys_scales_behind_each_key
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[from + page * p.head_dim + offset * scale_bytes;]]
  TO [[from + offset * (p.head_dim + scale_bytes) + p.head_dim;]]
  CASE cp_gather_indexer_k_quant_cache/v32_chunk/eager
  SAYS "k_scale: wrong in "
  WHY "codes and scale of a key are read side by side"
  DECODE)

plumb_mutant(gather_keys_shuffle_ignored
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[if (!p.shuffled || p.cache.page == 1) return]]
  TO [[if (p.head_dim > 0) return]]
  CASE cp_gather_indexer_k_quant_cache/shuffled_two_tiles/eager
  SAYS "k: wrong in "
  WHY "AITER's tiles are read as if keys lay row after row")

plumb_mutant(gather_keys_tile_of_first_tokens
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[offset / kTileBytes * p.head_dim +]]
  TO [[0 * p.head_dim +]]
  CASE cp_gather_indexer_k_quant_cache/shuffled_two_tiles/eager
  SAYS "k: wrong in "
  WHY "tokens after the first 16 of a page get the codes of its first row of tiles")

plumb_mutant(gather_keys_holes_copied
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[if (p.request_of_key == PLUMB_REQUEST_BY_CU_SEQ_LENS) {]]
  TO [[if (p.requests > 0) {]]
  CASE cp_gather_indexer_k_quant_cache/token_to_seq/eager
  SAYS "k: wrong in "
  WHY "token_to_seq is ignored: rows that it leaves out are gathered")

plumb_mutant(gather_keys_short_last_piece
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[for (std::int64_t i = lane; i < scale_bytes; i += kKeyThreads) {]]
  TO [[for (std::int64_t i = lane; i < 4; i += kKeyThreads) {]]
  CASE cp_gather_indexer_k_quant_cache/scales_of_32/eager
  SAYS "k_scale: wrong in "
  WHY "one scale per key is copied, even if a key has several")

plumb_mutant(mqa_schedule_of_first_rows
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[p.next_n - 1 : 0;]]
  TO [[0 : 0;]]
  CASE paged_mqa_logits_metadata/all_one/eager
  SAYS "right for the lengths of the first query row of each request"
  WHY "a request has the length of its first query row, which may see no token yet")

plumb_mutant(mqa_schedule_last_atom_dropped
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[end ? p.requests * p.atoms : atom]]
  TO [[end ? p.requests * p.atoms - 1 : atom]]
  CASE paged_mqa_logits_metadata/v32_decode/eager
  SAYS "schedule: in no slot is request 32"
  WHY "the end of the schedule is set before the last atom instead of after it")

plumb_mutant(mqa_schedule_remainder_from_the_end
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[slot - (p.slots - rest);]]
  TO [[rest - slot;]]
  CASE paged_mqa_logits_metadata/more_slots_than_segments/eager
  SAYS "and ends in front of it"
  WHY "the segments that remain after an even division are given to the wrong slots, so that later slots start before earlier ones")

plumb_mutant(mqa_schedule_past_batch
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[end ? p.requests * p.atoms : atom]]
  TO [[end ? (p.requests + 1) * p.atoms : atom]]
  CASE paged_mqa_logits_metadata/v32_decode/eager
  SAYS "entry 132 is (atom 34, segment 0), and 33 requests have 33 atoms"
  WHY "the end of the schedule counts one request too many")

plumb_mutant(mqa_schedule_last_entry_unset
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[if (slot > p.slots) return;]]
  TO [[if (slot >= p.slots) return;]]
  CASE paged_mqa_logits_metadata/v32_decode/eager
  SAYS "1 of 1 wrong entries: never written"
  WHY "the last entry of the schedule, its end, is not written")

plumb_mutant(mqa_schedule_counts_requests
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[request * p.atoms + (empty]]
  TO [[request + (empty]]
  CASE paged_mqa_logits_metadata/next_n_2_atoms_2/eager
  SAYS "schedule: "
  WHY "entries count requests where their reader counts atoms")

plumb_mutant(mqa_schedule_whole_segments_only
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[(length + p.split_kv - 1) / p.split_kv;]]
  TO [[length / p.split_kv;]]
  CASE paged_mqa_logits_metadata/all_one/eager
  SAYS "schedule: in no slot is request 0 (length 1): segment 0 of 1"
  WHY "the last segment of a request counts only if it is full"
  DECODE)

plumb_mutant(mqa_schedule_atoms_without_work
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[    total += segments_of(p, request) * p.atoms;]]
  TO [[    total += segments_of(p, request) * p.next_n;]]
  CASE paged_mqa_logits_metadata/next_n_4_multicast/eager
  SAYS "schedule: "
  WHY "work is counted for every query row instead of every atom")

# ---- fp4_paged_mqa_logits

plumb_mutant(fp4_logits_nibbles_of_keys_swapped
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[scales[g], key + g * kMxGroup);]]
  TO [[scales[g], key + g * kMxGroup);
    for (int d = g * kMxGroup; d < (g + 1) * kMxGroup; d += 2) {
      const float even = key[d];
      key[d] = key[d + 1];
      key[d + 1] = even;
    }]]
  CASE fp4_paged_mqa_logits/dim_64/eager
  SAYS "2 of 2 rows (rows 0-1)"
  WHY "the even dim of a key is read from the high nibble")

plumb_mutant(fp4_logits_scale_of_the_next_group
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[scales[g], key + g * kMxGroup);]]
  TO [[scales[g ^ 1], key + g * kMxGroup);]]
  CASE fp4_paged_mqa_logits/page64_ragged/eager
  SAYS "2 of 3 rows (rows 0, 2)"
  WHY "each group of 32 dims of a key has the scale of its neighbour")

plumb_mutant(fp4_logits_first_scale_for_all
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[scales[g], key + g * kMxGroup);]]
  TO [[scales[0], key + g * kMxGroup);]]
  CASE fp4_paged_mqa_logits/page64_ragged/eager
  SAYS "2 of 3 rows (rows 0, 2)"
  WHY "all groups of a key have the scale of the first one")

plumb_mutant(fp4_logits_scales_behind_each_token
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[const std::uint8_t* codes = block + token * (p.dim / 2);
  const std::uint8_t* scales = block + p.page * (p.dim / 2) + token * (p.dim / kMxGroup);]]
  TO [[const std::uint8_t* codes = block + token * (p.dim / 2 + p.dim / kMxGroup);
  const std::uint8_t* scales = codes + p.dim / 2;]]
  CASE fp4_paged_mqa_logits/page64_ragged/eager
  SAYS "2 of 3 rows (rows 0, 2)"
  WHY "a token's scales are read behind its own codes (records of 68 bytes) instead of behind those of the block")

plumb_mutant(fp4_logits_stride_of_the_shape
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[number * p.block_stride_bytes;]]
  TO [[number * (p.page * (p.dim / 2 + p.dim / kMxGroup));]]
  CASE fp4_paged_mqa_logits/padded_blocks/eager
  SAYS "2 of 2 rows (rows 0-1)"
  WHY "the stride of a block is taken to be the size of its tokens")

plumb_mutant(fp4_logits_offset_of_32_bits
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[p.cache + number * p.block_stride_bytes;]]
  TO [[p.cache + static_cast<std::uint32_t>(number * p.block_stride_bytes);]]
  CASE fp4_paged_mqa_logits/far_blocks/eager
  SAYS "2 of 2 rows (rows 0-1)"
  WHY "the offset of a block is cut to 32 bits")

plumb_mutant(fp4_logits_query_scale_folded_twice
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[weights[head] = p.weights[row * p.heads + head];]]
  TO [[weights[head] = p.weights[row * p.heads + head] *
                    decode_ue8m0(scales[head * (dim / kMxGroup)]);]]
  CASE fp4_paged_mqa_logits/page64_ragged/eager
  SAYS "2 of 3 rows (rows 0, 2)"
  WHY "the weight of a head is multiplied by the scale of its query too, as the fp8 form does")

plumb_mutant(fp4_logits_minus_zero_is_nan
  OP fp4_paged_mqa_logits FILE fp4.h
  FROM [[return code & 8U ? -kSizes]]
  TO [[if (code == 8U) return bits_float(0x7fc00000U);
  return code & 8U ? -kSizes]]
  CASE fp4_paged_mqa_logits/dim_64/eager
  SAYS "logits: "
  WHY "code 8, which is -0, is taken for NaN")

plumb_mutant(fp4_logits_one_length_per_request
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[if (p.context_lens_dims == 2) return lengths[query];]]
  TO [[if (p.context_lens_dims == 2) return lengths[0];]]
  CASE fp4_paged_mqa_logits/next_n_2/eager
  SAYS "3 of 6 rows (rows 1, 3, 5)"
  WHY "all next_n rows of a request have the length of the first row")

plumb_mutant(fp4_logits_not_cleaned
  OP fp4_paged_mqa_logits FILE indexer/fp4_paged_mqa_logits.cu
  FROM [[if (first >= length && !p.clean_logits) return;]]
  TO [[if (first >= length) return;]]
  CASE fp4_paged_mqa_logits/next_n_3_clean/eager
  SAYS "logits: "
  WHY "tiles behind the context are not set to -inf")
