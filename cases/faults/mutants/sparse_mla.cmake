# SPDX-License-Identifier: Apache-2.0
#
# Mutants of this family (cases/faults/CMakeLists.txt says what the words mean). Text stands
# between brackets.

plumb_mutant(mla_sink_per_split
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[const float sink = split ? 0.0F : sink_weight(call, head, softmax.largest);]]
  TO [[const float sink = sink_weight(call, head, softmax.largest);]]
  CASE sparse_mla_decode/more_parts_than_blocks/eager
  SAYS "elements in rows 0, 2-4, 6-7 of 8"
  WHY "the sink enters every split, and once more in the combination")

plumb_mutant(mla_extra_in_main_dialect
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[found.dialect = found.cache->dialect;]]
  TO [[found.dialect = params.main_cache.dialect;]]
  CASE sparse_mla_decode/fnuz_main_fn_extra/eager
  SAYS "elements in rows 0-11 of 12"
  WHY "one FP8 flag for two caches (vLLM #42893)")

plumb_mutant(mla_block_offset_in_32_bits
  OP sparse_mla_decode FILE mla_cache.h
  FROM [[cache.data + block * cache.block_stride_bytes;]]
  TO [[cache.data + static_cast<std::uint32_t>(block * cache.block_stride_bytes);]]
  CASE sparse_mla_decode/far_blocks/eager
  SAYS "elements in rows 4-7 of 16"
  WHY "block * stride wraps at 2^32 bytes (aiter #4774)")

plumb_mutant(mla_minus_one_read_as_slot_0
  OP sparse_mla_decode FILE sparse_mla_decode.cu
  FROM [[if (slot < 0) return zero_group(to);]]
  TO [[if (slot < 0) return load_group(locate(*block.cache, 0), group, block.dialect, to);]]
  CASE sparse_mla_decode/holes/eager
  SAYS "elements in rows 0-31 of 32"
  WHY "-1 is clamped to slot 0 and only its score is masked: 0 * NaN (hazard A3)")
