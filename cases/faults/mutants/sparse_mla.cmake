# SPDX-License-Identifier: Apache-2.0
#
# Mutants of this family (cases/faults/CMakeLists.txt says what the words mean). Text stands
# between brackets.

plumb_mutant(mla_sink_per_split
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[const float sink = split ? 0.0F : sink_weight(params.attn_sink, head, softmax.largest);]]
  TO [[const float sink = sink_weight(params.attn_sink, head, softmax.largest);]]
  CASE sparse_mla_decode/more_parts_than_blocks/eager
  SAYS "partial_out: "
  WHY "the sink enters every split, and once more in the combination")

plumb_mutant(mla_extra_in_main_dialect
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[found.dialect = found.cache->dialect;]]
  TO [[found.dialect = params.main_cache.dialect;]]
  CASE sparse_mla_decode/fnuz_main_fn_extra/eager
  SAYS "out: "
  WHY "one FP8 flag for two caches (vLLM #42893)")

plumb_mutant(mla_block_offset_in_32_bits
  OP sparse_mla_decode FILE mla_cache.h
  FROM [[cache.data + block * cache.block_stride_bytes;]]
  TO [[cache.data + static_cast<std::uint32_t>(block * cache.block_stride_bytes);]]
  CASE sparse_mla_decode/far_blocks/eager
  SAYS "out: "
  WHY "block * stride wraps at 2^32 bytes (aiter #4774)")

plumb_mutant(mla_minus_one_read_as_slot_0
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[zero_group(to + group * kGroup);]]
  TO [[load_group(*block.cache, locate(*block.cache, 0), group, block.dialect,
                 to + group * kGroup);]]
  CASE sparse_mla_decode/holes/eager
  SAYS "out: "
  WHY "-1 is clamped to slot 0 and only its score is masked: 0 * NaN (hazard A3)")

# ---- the V3.2 layout ----

plumb_mutant(mla_v32_scale_of_wrong_group
  OP sparse_mla_decode FILE mla_cache.h
  FROM [=[scales[group / kV32ScaleGroups]]=]
  TO [=[scales[group % 4]]=]
  CASE sparse_mla_decode/v32_scales_read_as_fp32/eager
  SAYS "rows 0-23 of 24"
  WHY "a scale of V3.2 covers 128 dimensions, not 64 as in V4")

plumb_mutant(mla_v32_scale_truncated
  OP sparse_mla_decode FILE mla_cache.h
  FROM [[if (reading == PLUMB_SCALE_BF16) return load_bf16(store_bf16(stored));]]
  TO [[if (reading == PLUMB_SCALE_BF16) return read_scale(stored, PLUMB_SCALE_E8M0);]]
  CASE sparse_mla_decode/v32_scales_read_as_bf16/eager
  SAYS "rows 0-23 of 24"
  WHY "the sm100 kernels' reading of a scale in a kernel that declares that of sm90")

plumb_mutant(mla_v32_scale_not_rounded
  OP sparse_mla_decode FILE mla_cache.h
  FROM [[if (reading == PLUMB_SCALE_BF16) return load_bf16(store_bf16(stored));]]
  TO [[if (reading == PLUMB_SCALE_BF16) return stored;]]
  CASE sparse_mla_decode/v32_scales_read_as_bf16/eager
  SAYS "lse: 24 elements in rows 0-23 of 24"
  WHY "the scale is used whole in a kernel that declares to round it to bf16 first")

plumb_mutant(mla_v32_rope_as_fp8
  OP sparse_mla_decode FILE mla_cache.h
  FROM [[if (group == key_groups(cache) - 1) {]]
  TO [[if (group == 7 && cache.layout == PLUMB_MLA_V4) {]]
  CASE sparse_mla_decode/v32_heads_128/eager
  SAYS "rows 0-255 of 256"
  WHY "the rope part is taken for one more group of codes")

plumb_mutant(mla_v32_values_include_rope
  OP sparse_mla_decode FILE mla_attend.h
  FROM [[const std::uint16_t* from = work.tokens + token * kTokenStride + thread_index() * kThreadDims;]]
  TO [[const std::uint16_t* from = work.tokens + token * kTokenStride + thread_index() * kThreadDims + work.key_dims - kValueDim;]]
  CASE sparse_mla_decode/v32_page_1_ragged/eager
  SAYS "rows 0-15, 20-47 of 48"
  WHY "values are the last 512 dimensions of a key in V4 and the first in V3.2")

plumb_mutant(mla_v32_rope_not_scored
  OP sparse_mla_decode FILE mla_attend.h
  FROM [[for (int d = 0; d < work.key_dims; ++d) {]]
  TO [[for (int d = 0; d < kValueDim; ++d) {]]
  CASE sparse_mla_decode/v32_tp8/eager
  SAYS "rows 0-31 of 32"
  WHY "a score over 512 dimensions where a key has 576")

plumb_mutant(mla_v32_blocks_taken_for_contiguous
  OP sparse_mla_decode FILE mla_cache.h
  FROM [[const std::uint8_t* token = base + offset * kV32TokenBytes;]]
  TO [[const std::uint8_t* token = cache.data + (block * cache.page + offset) * kV32TokenBytes;]]
  CASE sparse_mla_decode/v32_two_queries/eager
  SAYS "rows 0-101 of 102"
  WHY "slot * 656 instead of block * stride + offset * 656")
