# SPDX-License-Identifier: Apache-2.0
#
# Mutants of this family (faults/CMakeLists.txt says what the words mean). Text stands
# between brackets.

plumb_mutant(mqa_logits_relu_after_weight
  OP fp8_mqa_logits FILE indexer/mqa_logits.h
  FROM [[query.weights[head] * (score < 0 ? 0 : score);]]
  TO [[query.weights[head] * score < 0 ? 0 : query.weights[head] * score;]]
  CASE fp8_mqa_logits/k512_around_k/eager
  SAYS "rows 0-2 of 3"
  WHY "the ReLU comes after the head weight: negative weights count for nothing")

plumb_mutant(mqa_logits_relu_lost
  OP fp8_paged_mqa_logits FILE indexer/mqa_logits.h
  FROM [[(score < 0 ? 0 : score);]]
  TO [[score;]]
  CASE fp8_paged_mqa_logits/k512_around_k/eager
  SAYS "rows 0-2 of 3"
  WHY "the ReLU of each head is missing (vLLM #50455)")

plumb_mutant(mqa_logits_weight_of_next_head
  OP fp8_mqa_logits FILE indexer/mqa_logits.h
  FROM [[query.weights[head] *]]
  TO [[query.weights[(head + 1) % query.heads] *]]
  CASE fp8_mqa_logits/k512_around_k/eager
  SAYS "rows 0-2 of 3"
  WHY "each head has the weight of another")

plumb_mutant(mqa_logits_start_not_clamped
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[const std::int64_t start = clamp_key(p.starts[row], p.keys);]]
  TO [[const std::int64_t start = p.starts[row];]]
  CASE fp8_mqa_logits/row_local_beyond_all_keys/eager
  SAYS "elements in rows 2-3 of 4 beyond their bound"
  WHY "columns of the compressed form count from a start in front of the first key")

plumb_mutant(mqa_logits_end_clamped_early
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[return key < 0 ? 0 : key > keys ? keys : key;]]
  TO [[return key < 0 ? 0 : key >= keys ? keys - 1 : key;]]
  CASE fp8_mqa_logits/k512_around_k/eager
  SAYS "1 element in row 2 of 3 beyond its bound; worst [2, 519]"
  WHY "an end at the number of keys loses the last key")

plumb_mutant(mqa_logits_global_columns
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[p.max_seqlen_k > 0 ? start : 0;]]
  TO [[p.max_seqlen_k > 0 ? 0 : 0;]]
  CASE fp8_mqa_logits/row_local/eager
  SAYS "rows 0-3 of 4"
  WHY "the compressed form has the columns of the keys instead of the row's own")

plumb_mutant(mqa_logits_not_cleaned
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[  if (empty && !p.clean_logits) return;]]
  TO [[  if (empty) return;]]
  CASE fp8_mqa_logits/two_requests_clean/eager
  SAYS "non-finite elements in rows 0-2 of 3"
  WHY "tiles that no window touches are not cleaned")

plumb_mutant(mqa_logits_one_dialect
  OP fp8_mqa_logits FILE indexer/fp8_mqa_logits.cu
  FROM [[p.k + key * p.dim, kLogitsTile, dim, p.k_dialect,]]
  TO [[p.k + key * p.dim, kLogitsTile, dim, p.q_dialect,]]
  CASE fp8_mqa_logits/dialects_mixed/eager
  SAYS "rows 0-2 of 3"
  WHY "keys are read in the dialect of the queries (vLLM #42893)")

plumb_mutant(mqa_logits_minus_zero_is_nan
  OP fp8_paged_mqa_logits FILE indexer/mqa_logits.h
  FROM [[key[d] = decode_e4m3(codes[d / kLogitsTile * tile_stride + d % kLogitsTile], dialect);]]
  TO [[const std::uint8_t code = codes[d / kLogitsTile * tile_stride + d % kLogitsTile];
    key[d] = decode_e4m3(code, code == 0x80 ? PLUMB_E4M3FNUZ : dialect);]]
  CASE fp8_paged_mqa_logits/fn_cache/eager
  SAYS "non-finite elements in rows 0-1 of 2"
  WHY "the byte of -0 is taken for the NaN of the other dialect (sglang #28455)")

plumb_mutant(paged_mqa_logits_interleaved_scales
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[reinterpret_cast<const float*>(block + page * p.dim);]]
  TO [[reinterpret_cast<const float*>(block + token * (p.dim + 4) + p.dim) - token;]]
  CASE fp8_paged_mqa_logits/k512_around_k/eager
  SAYS "rows 0-2 of 3"
  WHY "a token's scale is looked for behind its own values (vLLM #52109)")

plumb_mutant(paged_mqa_logits_scale_of_first_token
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[scales[token] *]]
  TO [[scales[0] *]]
  CASE fp8_paged_mqa_logits/k512_around_k/eager
  SAYS "rows 0-2 of 3"
  WHY "every token of a block has the first one's scale")

plumb_mutant(paged_mqa_logits_one_length_per_request
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[if (p.context_lens_dims == 2) return lengths[query];]]
  TO [[if (p.context_lens_dims == 2) return lengths[0];]]
  CASE fp8_paged_mqa_logits/next_n_2/eager
  SAYS "rows 1, 3, 5 of 6"
  WHY "all next_n rows of a request have the length of the first")

plumb_mutant(paged_mqa_logits_shuffled_as_planar
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[p.shuffled && page > 1;]]
  TO [[p.shuffled && page < 1;]]
  CASE fp8_paged_mqa_logits/page64_shuffled/eager
  SAYS "rows 0-2 of 3"
  WHY "the shuffled layout is read as the planar one")

plumb_mutant(paged_mqa_logits_offset_of_32_bits
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[p.cache.data + number * p.cache.block_stride_bytes;]]
  TO [[p.cache.data + static_cast<std::uint32_t>(number * p.cache.block_stride_bytes);]]
  CASE fp8_paged_mqa_logits/far_blocks/eager
  SAYS "norm of rows 0-1 of 2 wrong"
  WHY "the offset of a block is cut to 32 bits (aiter #4774)")

plumb_mutant(paged_mqa_logits_not_cleaned
  OP fp8_paged_mqa_logits FILE indexer/fp8_paged_mqa_logits.cu
  FROM [[    if (p.clean_logits) *logit = minus_infinity();
]]
  TO [[]]
  CASE fp8_paged_mqa_logits/next_n_3_clean/eager
  SAYS "non-finite elements in rows 0-8 of 9"
  WHY "columns behind the length keep what was there")

plumb_mutant(indexer_q_sine_of_other_sign
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[first ? own * cosine - other * sine : own * cosine + other * sine;]]
  TO [[first ? own * cosine + other * sine : own * cosine - other * sine;]]
  CASE indexer_q_rope_quant/v4/eager
  SAYS "q_out: rows 64-191 of 192"
  WHY "the rotation goes the other way")

plumb_mutant(indexer_q_pairs_of_the_other_kind
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[p.rope_pairs == PLUMB_ROPE_INTERLEAVED;]]
  TO [[true;]]
  CASE indexer_q_rope_quant/v32/eager
  SAYS "q_out: rows 64-191 of 192"
  WHY "halves are taken for neighbours")

plumb_mutant(indexer_q_last_dimensions_turned
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[const int i = d - static_cast<int>(p.rope_offset),]]
  TO [[const int i = d - static_cast<int>(p.dim - p.rope_dim),]]
  CASE indexer_q_rope_quant/v32/eager
  SAYS "q_out: rows 64-191 of 192"
  WHY "the last 64 dimensions are rotated instead of the first")

plumb_mutant(indexer_q_cosine_and_sine_swapped
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[cosine = cos_sin[pair], sine = cos_sin[half + pair];]]
  TO [[cosine = cos_sin[half + pair], sine = cos_sin[pair];]]
  CASE indexer_q_rope_quant/one_token/eager
  SAYS "q_out: rows 0-63 of 64"
  WHY "the table is read as sines, then cosines")

plumb_mutant(indexer_q_transform_adds_only
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[values[i] = group_lane() & distance ? other - values[i] : values[i] + other;]]
  TO [[values[i] = values[i] + other;]]
  CASE indexer_q_rope_quant/hadamard/eager
  SAYS "q_out: row"
  WHY "the transform has no differences of neighbouring dimensions")

plumb_mutant(indexer_q_scale_truncated
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[decode_ue8m0(encode_ue8m0(ratio)) :]]
  TO [[bits_float(float_bits(ratio) & 0x7f800000U) :]]
  CASE indexer_q_rope_quant/v4/eager
  SAYS "weights_out: norm of rows 0-2 of 3 wrong"
  WHY "the exponent of the scale is truncated instead of rounded up")

plumb_mutant(indexer_q_not_rounded_before_amax
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[return load_bf16(store_bf16(turned));]]
  TO [[return turned;]]
  CASE indexer_q_rope_quant/all_dimensions/eager
  SAYS "q_out: rows 16-22, 25-63 of 64 wrong"
  WHY "rotated values are quantised without the rounding to bf16")

plumb_mutant(indexer_q_scale_always_pow2
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[pow2 ? decode_ue8m0]]
  TO [[true ? decode_ue8m0]]
  CASE indexer_q_rope_quant/sglang/eager
  SAYS "weights_out: norm of rows 0-3 of 4 wrong"
  WHY "the scale is rounded up to a power of two where it has to stay as it is")

plumb_mutant(indexer_q_scale_left_out
  OP indexer_q_rope_quant FILE indexer/indexer_q_rope_quant.cu
  FROM [[load_bf16(p.weights[index]) * scale * p.softmax_scale]]
  TO [[load_bf16(p.weights[index]) * p.softmax_scale]]
  CASE indexer_q_rope_quant/v32/eager
  SAYS "weights_out: norm of rows 0-2 of 3 wrong"
  WHY "the weight lacks the scale of its head")

plumb_mutant(gather_keys_clears_rows_behind
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[if (request < 0) return;]]
  TO [[if (request < 0) {
    p.k[key * p.k_row_stride] = 0;
    return;
  }]]
  CASE cp_gather_indexer_k_quant_cache/upper_bound/eager
  SAYS "every wrong element is zero"
  WHY "rows of no request are written: the output may hold what another chunk put there")

plumb_mutant(gather_keys_empty_request_taken
  OP cp_gather_indexer_k_quant_cache FILE block_table.h
  FROM [[query_start_loc[0] <= token;]]
  TO [[query_start_loc[0] < token;]]
  CASE cp_gather_indexer_k_quant_cache/many_requests/eager
  SAYS "k: wrong in rows"
  WHY "the first key of a request counts for the request in front of it (vllm #40654)")

plumb_mutant(gather_keys_block_offset_32_bits
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[block * p.cache.block_stride_bytes;]]
  TO [[static_cast<std::uint32_t>(block * p.cache.block_stride_bytes);]]
  CASE cp_gather_indexer_k_quant_cache/far_blocks/eager
  SAYS "k: wrong in rows"
  WHY "offsets of blocks wrap at 2^32 bytes")

plumb_mutant(gather_keys_dense_blocks
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[block * p.cache.block_stride_bytes;]]
  TO [[block * page * (p.head_dim + 4 * (p.head_dim / p.quant_block_size));]]
  CASE cp_gather_indexer_k_quant_cache/v4_block/eager
  SAYS "k: wrong in rows"
  WHY "blocks are taken to lie side by side, without the bytes that align them")

plumb_mutant(gather_keys_scales_behind_each_key
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[from + page * p.head_dim + offset * scale_bytes;]]
  TO [[from + offset * (p.head_dim + scale_bytes) + p.head_dim;]]
  CASE cp_gather_indexer_k_quant_cache/v32_chunk/eager
  SAYS "k_scale: wrong in rows"
  WHY "codes and scale of a key are taken to stand side by side")

plumb_mutant(gather_keys_shuffle_ignored
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[if (!p.shuffled || p.cache.page == 1) return]]
  TO [[if (p.head_dim > 0) return]]
  CASE cp_gather_indexer_k_quant_cache/shuffled_two_tiles/eager
  SAYS "k: wrong in rows"
  WHY "AITER's tiles are read as if keys lay row after row: plausible keys, and no error")

plumb_mutant(gather_keys_tile_of_first_tokens
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[offset / kTileBytes * p.head_dim +]]
  TO [[0 * p.head_dim +]]
  CASE cp_gather_indexer_k_quant_cache/shuffled_two_tiles/eager
  SAYS "k: wrong in rows"
  WHY "tokens behind the first 16 of a page get the codes of the first tile")

plumb_mutant(gather_keys_holes_copied
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[if (p.request_of_key == PLUMB_REQUEST_BY_CU_SEQ_LENS) {]]
  TO [[if (p.requests > 0) {]]
  CASE cp_gather_indexer_k_quant_cache/token_to_seq/eager
  SAYS "k: wrong in rows"
  WHY "token_to_seq is ignored: rows that it leaves out are gathered")

plumb_mutant(gather_keys_short_last_piece
  OP cp_gather_indexer_k_quant_cache FILE indexer/cp_gather_indexer_k_quant_cache.cu
  FROM [[for (std::int64_t i = lane; i < scale_bytes; i += kKeyThreads) {]]
  TO [[for (std::int64_t i = lane; i < 4; i += kKeyThreads) {]]
  CASE cp_gather_indexer_k_quant_cache/scales_of_32/eager
  SAYS "k_scale: wrong in rows"
  WHY "one scale per key is copied, however many there are")

plumb_mutant(mqa_schedule_of_first_rows
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[p.next_n - 1 : 0;]]
  TO [[0 : 0;]]
  CASE paged_mqa_logits_metadata/all_one/eager
  SAYS "right for the lengths of the first query row of each request"
  WHY "a request counts with its first query row, which may have no token yet")

plumb_mutant(mqa_schedule_last_atom_dropped
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[end ? p.requests * p.atoms : atom]]
  TO [[end ? p.requests * p.atoms - 1 : atom]]
  CASE paged_mqa_logits_metadata/v32_decode/eager
  SAYS "schedule: in no slot is request 32"
  WHY "the end stands in front of the last atom instead of behind it")

plumb_mutant(mqa_schedule_remainder_from_the_end
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[slot - (p.slots - rest);]]
  TO [[rest - slot;]]
  CASE paged_mqa_logits_metadata/more_slots_than_segments/eager
  SAYS "and ends in front of it"
  WHY "the segments that are left over count twice, in slots that go back")

plumb_mutant(mqa_schedule_past_batch
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[end ? p.requests * p.atoms : atom]]
  TO [[end ? (p.requests + 1) * p.atoms : atom]]
  CASE paged_mqa_logits_metadata/v32_decode/eager
  SAYS "entry 132 is (atom 34, segment 0), and 33 requests have 33 atoms"
  WHY "the end counts a request more than there are")

plumb_mutant(mqa_schedule_last_entry_unset
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[if (slot > p.slots) return;]]
  TO [[if (slot >= p.slots) return;]]
  CASE paged_mqa_logits_metadata/v32_decode/eager
  SAYS "1 of 1 wrong entries: never written"
  WHY "an entry per slot, and none for the end")

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
  WHY "the last segment of a request counts only if it is full")

plumb_mutant(mqa_schedule_atoms_without_work
  OP paged_mqa_logits_metadata FILE indexer/paged_mqa_logits_metadata.cu
  FROM [[    total += segments_of(p, request) * p.atoms;]]
  TO [[    total += segments_of(p, request) * p.next_n;]]
  CASE paged_mqa_logits_metadata/next_n_4_multicast/eager
  SAYS "schedule: "
  WHY "work is counted for every query row where an atom has several of them")
