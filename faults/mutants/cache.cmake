# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(k_cache_minus_one_is_slot_0
  OP quantize_and_insert_k_cache FILE quantization/group_quant.h DECODE
  FROM [[return skipped ? kNoSlot : slot;]]
  TO [[return skipped ? 0 : slot;]]
  CASE quantize_and_insert_k_cache/holes/eager
  SAYS "cache: a byte that no token owns changed in 1 of 8 rows (row 0)"
  WHY "slot -1 is clamped to 0: tokens without a slot are written to slot 0")

plumb_mutant(k_cache_pad_not_zeroed
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [[if (group_lane(kLanes) == 0 && p.pad == PLUMB_PAD_ZERO) slot.scales[kRopeGroup] = 0;]]
  TO [[]]
  CASE quantize_and_insert_k_cache/swa_block/eager
  SAYS "cache.rope: 9 of 9 rows (rows 0-8) wrong; row 0 differs in 1 of 129 places (first [0, 128]: expected 0"
  WHY "the pad byte of the scales keeps what was there (aiter #4216)")

plumb_mutant(k_cache_pad_zeroed_unasked
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [[ && p.pad == PLUMB_PAD_ZERO)]]
  TO [[)]]
  CASE quantize_and_insert_k_cache/pad_untouched/eager
  SAYS "cache: a byte that no token owns changed in "
  WHY "the pad byte of the scales is written where it has to stay")

plumb_mutant(k_cache_floor_1e_4
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [[at_least(amax_floor, amax)]]
  TO [[at_least(1e-4F, amax)]]
  CASE quantize_and_insert_k_cache/floor_1e_8/eager
  SAYS "cache.scales: "
  WHY "amax has the floor 1e-4 where 1e-8 is declared")

plumb_mutant(k_cache_block_offset_in_32_bits
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [[number * cache.block_stride_bytes;]]
  TO [[static_cast<std::uint32_t>(number * cache.block_stride_bytes);]]
  CASE quantize_and_insert_k_cache/far_blocks/eager
  SAYS "cache.codes: 3 of 9 rows (rows 0, 2, 8) wrong"
  WHY "block * stride wraps at 2^32 bytes (vllm #52109)")

plumb_mutant(k_cache_rows_of_the_view
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [[cache.page * kTokenBytes + offset * kScaleBytes]]
  TO [[offset * (kTokenBytes + kScaleBytes) + kTokenBytes]]
  CASE quantize_and_insert_k_cache/swa_block/eager
  SAYS "cache.scales: 8 of 9 rows (rows 1-8) wrong"
  WHY "a token's scales are written as if each token were 584 bytes, its scales right behind its data: right for the last token of a block only")

plumb_mutant(k_cache_dialect_ignored
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [[encode_e4m3x16(x, dialect)]]
  TO [[encode_e4m3x16(x, PLUMB_E4M3FN)]]
  CASE quantize_and_insert_k_cache/fnuz_everywhere/eager
  SAYS "cache.codes: 9 of 9 rows (rows 0-8) wrong"
  WHY "codes are OCP where fnuz is declared, under scales of fnuz")

plumb_mutant(k_cache_floor_under_the_scale
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu
  FROM [[at_least(amax_floor, amax) / quantisation_largest(dialect)]]
  TO [[at_least(amax_floor, amax / quantisation_largest(dialect))]]
  CASE quantize_and_insert_k_cache/swa_block/eager
  SAYS "cache.scales: 5 of 9 rows (rows 0-1, 4-5, 7) wrong"
  WHY "1e-4 is the floor of amax / 448, as in FlashMLA's tests, instead of amax")

plumb_mutant(ds_mla_scales_are_powers_of_two
  OP concat_and_cache_ds_mla FILE cache/concat_and_cache_ds_mla.cu
  FROM [[p.scale_form == PLUMB_SCALE_POWER_OF_TWO]]
  TO [[true]]
  CASE concat_and_cache_ds_mla/cuda_block/eager
  SAYS "elements beyond their bound in 9 of 9 rows (rows 0-8)"
  WHY "scales are rounded up to powers of two, as vLLM 0.33 does and 0.22 does not")

plumb_mutant(ds_mla_scales_as_they_are
  OP concat_and_cache_ds_mla FILE cache/concat_and_cache_ds_mla.cu
  FROM [[p.scale_form == PLUMB_SCALE_POWER_OF_TWO]]
  TO [[false]]
  CASE concat_and_cache_ds_mla/powers_of_two/eager
  SAYS "cache.scales: "
  WHY "scales are not rounded to powers of two: FlashMLA's kernels differ on them (vllm #49435)")

plumb_mutant(ds_mla_floor_flt_min
  OP concat_and_cache_ds_mla FILE cache/concat_and_cache_ds_mla.cu
  FROM [[at_least(p.scale_floor,]]
  TO [[at_least(0x1p-126F,]]
  CASE concat_and_cache_ds_mla/powers_of_two/eager
  SAYS "cache.scales: "
  WHY "scales have the floor 2^-126, as in another version of vLLM, where 1e-4 is declared")

plumb_mutant(ds_mla_no_least_scale
  OP concat_and_cache_ds_mla FILE cache/concat_and_cache_ds_mla.cu
  FROM [[at_least(p.scale_floor, amax / quantisation_largest(dialect));]]
  TO [[amax / quantisation_largest(dialect);]]
  CASE concat_and_cache_ds_mla/cuda_block/eager
  SAYS "cache.scales: scales below 1.17549e-38 in 4 of 9 rows (rows 0, 3, 5, 7)"
  WHY "scales have no floor: a tile of zeros is divided by zero")

plumb_mutant(ds_mla_rope_before_scales
  OP concat_and_cache_ds_mla FILE cache/concat_and_cache_ds_mla.cu
  FROM [[kScalesAt = kLatent, kRopeAt = kScalesAt + 4 * kTiles, kEntryBytes = kRopeAt + 128;]]
  TO [[kRopeAt = kLatent, kScalesAt = kRopeAt + 128, kEntryBytes = kScalesAt + 16;]]
  CASE concat_and_cache_ds_mla/cuda_block/eager
  SAYS "cache.rope: 9 of 9 rows (rows 0-8) wrong"
  WHY "RoPE is stored in front of the scales instead of behind them")

plumb_mutant(ds_mla_blocks_without_gaps
  OP concat_and_cache_ds_mla FILE cache/concat_and_cache_ds_mla.cu
  FROM [[block * p.cache.block_stride_bytes +]]
  TO [[block * p.cache.page * kEntryBytes +]]
  CASE concat_and_cache_ds_mla/padded_blocks/eager
  SAYS "cache.rope: 9 of 10 rows (rows 0-2, 4-9) wrong"
  WHY "the block stride is computed instead of taken from the caller")

plumb_mutant(ds_mla_448_on_fnuz
  OP concat_and_cache_ds_mla FILE fp8.h
  FROM [[dialect == PLUMB_E4M3FNUZ ? 224.0F]]
  TO [[dialect == PLUMB_E4M3FNUZ ? 448.0F]]
  CASE concat_and_cache_ds_mla/fnuz_everywhere/eager
  SAYS "elements beyond their bound in 9 of 9 rows (rows 0-8)"
  WHY "the scale of fnuz codes is amax / 448, as for OCP codes, instead of amax / 224: the largest codes saturate")

plumb_mutant(indexer_k_layout_not_shuffled
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [[if (!p.shuffled || p.cache.page == 1)]]
  TO [[if (p.cache.page >= 1)]]
  CASE indexer_k_quant_and_cache/shuffled_64/eager
  SAYS "cache.codes: 20 of 20 rows (rows 0-19) wrong"
  WHY "keys have the planar layout where readers expect tiles of 16 x 16")

plumb_mutant(indexer_k_page_1_shuffled
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [[if (!p.shuffled || p.cache.page == 1)]]
  TO [[if (!p.shuffled)]]
  CASE indexer_k_quant_and_cache/shuffled_page_1/eager
  SAYS "cache.codes: 20 of 20 rows (rows 0-19) wrong"
  WHY "blocks of one key are written as tiles of 16 tokens, which reach into the next blocks")

plumb_mutant(indexer_k_only_minus_one_skipped
  OP indexer_k_quant_and_cache FILE quantization/group_quant.h
  FROM [[? slot < 0]]
  TO [[? slot == -1]]
  CASE indexer_k_quant_and_cache/holes/eager
  SAYS "cache: guard zone damaged"
  WHY "negative slots other than -1 are written")

plumb_mutant(indexer_k_never_skips
  OP indexer_k_quant_and_cache FILE quantization/group_quant.h
  FROM [[return skipped ? kNoSlot : slot;]]
  TO [[return slot;]]
  CASE indexer_k_quant_and_cache/minus_one_holes/eager
  SAYS "cache: a byte that no token owns changed in "
  WHY "no slot is skipped, as in engines in which every token has a slot")

plumb_mutant(indexer_k_ue8m0_ignored
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [[p.scale_form == PLUMB_SCALE_POWER_OF_TWO]]
  TO [[false]]
  CASE indexer_k_quant_and_cache/block_of_64/eager
  SAYS "cache.scales: 20 of 20 rows (rows 0-19) wrong"
  WHY "scales are plain fp32 although powers of two are declared")

plumb_mutant(indexer_k_ue8m0_unasked
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [[p.scale_form == PLUMB_SCALE_POWER_OF_TWO]]
  TO [[true]]
  CASE indexer_k_quant_and_cache/plain_scales/eager
  SAYS "cache.scales: "
  WHY "scales are powers of two although plain fp32 is declared")

plumb_mutant(indexer_k_floor_1e_4
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [[at_least(p.amax_floor, amax)]]
  TO [[at_least(1e-4F, amax)]]
  CASE indexer_k_quant_and_cache/floor_1e_8/eager
  SAYS "cache.scales: "
  WHY "amax has the floor 1e-4 where 1e-8 is declared")

plumb_mutant(indexer_k_scale_behind_each_key
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [=[(block + page * p.head_dim)[offset * groups + group]]=]
  TO [=[(block + offset * (p.head_dim + 4) + p.head_dim)[group]]=]
  CASE indexer_k_quant_and_cache/block_of_64/eager
  SAYS "cache.scales: 19 of 20 rows (rows 1-19) wrong"
  WHY "the scale stands behind its key instead of behind all keys of the block")

plumb_mutant(indexer_k_block_offset_in_32_bits
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu
  FROM [[number * p.cache.block_stride_bytes;]]
  TO [[static_cast<std::uint32_t>(number * p.cache.block_stride_bytes);]]
  CASE indexer_k_quant_and_cache/far_blocks/eager
  SAYS "cache.codes: 6 of 18 rows (rows 0, 3, 6, 9, 13, 16) wrong"
  WHY "block * stride wraps at 2^32 bytes (vllm #52109)")

plumb_mutant(k_cache_scale_one_off
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu DECODE
  FROM [[*scale_byte = byte;]]
  TO [[*scale_byte = static_cast<std::uint8_t>(byte + 1);]]
  CASE quantize_and_insert_k_cache/swa_block/eager
  SAYS "every wrong element is too large by 1"
  WHY "the stored exponent is one more than that of the scale of the codes (vLLM #42604)")

plumb_mutant(k_cache_scale_truncated
  OP quantize_and_insert_k_cache FILE fp8.h DECODE
  FROM [[((bits & 0x7fffffU) != 0 ? 1U : 0U)]]
  TO [[0U]]
  CASE quantize_and_insert_k_cache/swa_block/eager
  SAYS "every wrong element is too small by 1"
  WHY "the exponent of the scale is truncated instead of rounded up, and codes saturate")

plumb_mutant(k_cache_offset_too_narrow
  OP quantize_and_insert_k_cache FILE cache/quantize_and_insert_k_cache.cu DECODE
  FROM [[number * cache.block_stride_bytes;]]
  TO [[static_cast<std::uint16_t>(number * cache.block_stride_bytes);]]
  CASE quantize_and_insert_k_cache/swa_block/eager
  SAYS "cache: a byte that no token owns changed in 1 of 3 rows (row 1)"
  WHY "block * stride wraps at 2^16 bytes, in real kernels at 2^32: small decode steps find this one")

plumb_mutant(k_cache_underflow_is_fnuz_nan
  OP quantize_and_insert_k_cache FILE fp8.h DECODE
  FROM [[if (fnuz && code == 0) return 0;]]
  TO [[]]
  CASE quantize_and_insert_k_cache/fnuz_everywhere/eager
  SAYS "every wrong element is 128 where 0 is expected"
  WHY "negative values that underflow become 0x80, the NaN of fnuz (sglang #28455)")

plumb_mutant(index_scale_offset_too_narrow
  OP indexer_k_quant_and_cache FILE cache/indexer_k_quant_and_cache.cu DECODE
  FROM [=[(block + page * p.head_dim)[offset]=]
  TO [=[(p.cache.data + (number * p.cache.block_stride_bytes + page * p.head_dim) % 4096)[offset]=]
  CASE indexer_k_quant_and_cache/block_of_64/eager
  SAYS "cache.scales: 20 of 20 rows (rows 0-19) wrong"
  WHY "the offset of a scale wraps at 2^12 bytes (real kernels: 2^32), that of the codes does not")

plumb_mutant(k_cache_unaligned_codes
  OP quantize_and_insert_k_cache FILE quantization/group_quant.h
  FROM [[codes.at[i / 4] >> (i % 4 * 8)]]
  TO [[codes.at[i / 4] >> (i % 4 * 4)]]
  CASE quantize_and_insert_k_cache/odd_stride/eager
  SAYS "cache.codes: 6 of 6 rows (rows 0-5) wrong"
  WHY "the path for unaligned rows takes codes from 4-bit fields instead of bytes")

plumb_mutant(gather_one_tile_per_block
  OP dequantize_and_gather_k_cache FILE sparse_mla/dequantize_and_gather_k_cache.cu
  FROM [[i < gather_len; i += grid_size_y() * kGatherTile]]
  TO [[i < gather_len && i == first; i += grid_size_y() * kGatherTile]]
  CASE dequantize_and_gather_k_cache/more_tiles_than_blocks/eager
  SAYS "workspace: wrong in 450 of 2606 rows (rows 1024-1271, 2327-2528)"
  WHY "each block gathers only its first tile: tiles beyond the size of the grid are missing")
