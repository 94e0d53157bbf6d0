# SPDX-License-Identifier: Apache-2.0
#
# Mutants of the kernels of this family. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(mxfp4_even_rule_without_rounding
  OP mxfp4_quant FILE quantization/mxfp4_quant.cu
  FROM [[rule == PLUMB_MX_SCALE_EVEN ? kQuarter : 0]]
  TO [[0]]
  CASE mxfp4_quant/scale_even/eager
  SAYS "scales"
  WHY "scales follow the rule floor, where the rule even is declared")

plumb_mutant(mxfp4_away_ties_to_even
  OP mxfp4_quant FILE fp4.h
  FROM [[const bool tie_up = away ||]]
  TO [[const bool tie_up = (away && code % 2 == 1) ||]]
  CASE mxfp4_quant/ties_away/eager
  SAYS "q"
  WHY "ties go to even, where away from zero is declared")

plumb_mutant(group_quant_underflow_is_fnuz_nan
  OP per_token_group_quant_fp8 FILE fp8.h
  FROM [[if (fnuz && code == 0) return 0;]]
  TO [[]]
  CASE per_token_group_quant_fp8/fnuz_codes_everywhere/eager
  SAYS "got 0x80 (nan)"
  WHY "negative zero and underflow become 0x80, the NaN of fnuz (sglang #28455)")

plumb_mutant(group_quant_scale_rounded_down
  OP per_token_group_quant_fp8 FILE fp8.h
  FROM [[((bits & 0x7fffffU) != 0 ? 1U : 0U)]]
  TO [[0U]]
  CASE per_token_group_quant_fp8/v4_flash_hidden_packed/eager
  SAYS "scales: 5 of 5 rows (rows 0-4) wrong"
  WHY "the exponent of the scale is truncated instead of rounded up")

plumb_mutant(group_quant_codes_truncated
  OP per_token_group_quant_fp8 FILE fp8.h
  FROM [[((magnitude + 0x7ffffU + even) >> 20)]]
  TO [[((magnitude + 0 * even) >> 20)]]
  CASE per_token_group_quant_fp8/strided_rows/eager
  SAYS "q: 8 of 8 rows (rows 0-7) wrong"
  WHY "codes are rounded towards zero")

plumb_mutant(group_quant_ties_away_from_zero
  OP per_token_group_quant_fp8 FILE fp8.h
  FROM [[0x7ffffU + even]]
  TO [[0x80000U + 0 * even]]
  CASE per_token_group_quant_fp8/reciprocal_of_powers_of_two/eager
  SAYS "q: 7 of 7 rows (rows 0-6) wrong"
  WHY "ties are rounded away from zero instead of to even")

plumb_mutant(group_quant_fnuz_aims_at_240
  OP per_token_group_quant_fp8 FILE fp8.h
  FROM [[dialect == PLUMB_E4M3FNUZ ? 224.0F]]
  TO [[dialect == PLUMB_E4M3FNUZ ? 240.0F]]
  CASE per_token_group_quant_fp8/fnuz_codes_everywhere/eager
  SAYS "elements beyond their bound in 5 of 5 rows (rows 0-4)"
  WHY "the scale of fnuz codes is amax / 240 (the largest code) instead of amax / 224")

plumb_mutant(group_quant_floor_missing
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [[at_least(p.amax_floor, amax) /]]
  TO [[amax /]]
  CASE per_token_group_quant_fp8/floor_of_1e_4/eager
  SAYS "scales: 4 of 12 rows (rows 1, 3, 5, 8) wrong; row 1 differs in 1 of 2 codes"
  WHY "groups of zeros have no floor on amax")

plumb_mutant(group_quant_scale_columns_not_padded
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [[token * p.scales_token_stride + group * p.scales_group_stride] =]]
  TO [[token * p.scales_token_stride + group * (p.scales_group_stride > 1 ? p.tokens : 1)] =]]
  CASE per_token_group_quant_fp8/v4_pro_hidden/eager
  SAYS "scales: written between its rows, at element 3 of the extent"
  WHY "columns of scales have no padding to a multiple of four tokens")

plumb_mutant(group_quant_packed_big_endian
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [[word * 4 + group % 4]]
  TO [[word * 4 + 3 - group % 4]]
  CASE per_token_group_quant_fp8/v4_flash_hidden_packed/eager
  SAYS "scales: 5 of 5 rows (rows 0-4) wrong"
  WHY "the first group of a word is in its high byte instead of its low byte")

plumb_mutant(group_quant_last_word_not_filled_up
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [[(groups + 3) / 4 * 4 : groups]]
  TO [[groups : groups]]
  CASE per_token_group_quant_fp8/filler_127/eager
  SAYS "scales: 6 of 6 rows (rows 0-5) wrong"
  WHY "the bytes behind the last group are not written")

plumb_mutant(group_quant_tail_not_zeroed
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [[i < p.group_size; i += kGroupLanes]]
  TO [[i < count; i += kGroupLanes]]
  CASE per_token_group_quant_fp8/short_last_group/eager
  SAYS "q: second launch differs from the first in 6 of 6 rows (rows 0-5); row 0 differs in 84 of 384 places"
  WHY "codes behind the last column are not set to 0")

plumb_mutant(group_quant_reads_past_the_last_column
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [[left < p.group_size ? left : p.group_size;]]
  TO [[left > 0 ? p.group_size : 0;]]
  CASE per_token_group_quant_fp8/short_last_group/eager
  SAYS "q: 6 of 6 rows (rows 0-5) wrong"
  WHY "the maximum of the last group also covers what lies behind its row")

plumb_mutant(group_quant_neighbours_scale
  OP per_token_group_quant_fp8 FILE quantization/group_quant.h
  FROM [[shuffle_xor(whole_wave(), value, distance, lanes)]]
  TO [[shuffle_xor(whole_wave(), value, 2 * distance, 2 * lanes)]]
  CASE per_token_group_quant_fp8/q_lora_packed_row_major/eager
  SAYS "scales: 6 of 6 rows (rows 0-5) wrong"
  WHY "the maximum is taken over half of the lanes of two groups instead of all of one")

plumb_mutant(mxfp4_ties_away_from_zero
  OP mxfp4_quant FILE fp4.h
  FROM [[size > boundary]]
  TO [[size >= boundary]]
  CASE mxfp4_quant/two_groups/eager
  SAYS "q: "
  WHY "ties go away from zero instead of to even")

plumb_mutant(mxfp4_negative_zero
  OP mxfp4_quant FILE fp4.h
  FROM [[code != 0 || zero_has_sign]]
  TO [[true]]
  CASE mxfp4_quant/helper/eager
  SAYS "got 0x08 (-0)"
  WHY "negative values that underflow get code 8, where code 0 is declared")

plumb_mutant(mxfp4_ties_always_to_even
  OP mxfp4_quant FILE fp4.h
  FROM [[to_even && code % 2]]
  TO [[code % 2]]
  CASE mxfp4_quant/ties_toward_zero/eager
  SAYS "q: "
  WHY "ties go to even, whatever rule is declared")

plumb_mutant(mxfp4_nibbles_swapped
  OP mxfp4_quant FILE quantization/mxfp4_quant.cu
  FROM [[even | odd << 4]]
  TO [[odd | even << 4]]
  CASE mxfp4_quant/seventeen_groups/eager
  SAYS "q: 7 of 7 rows (rows 0-6) wrong"
  WHY "the even column goes to the high nibble")

plumb_mutant(mxfp4_scale_rounded_down
  OP mxfp4_quant FILE fp8.h
  FROM [[((bits & 0x7fffffU) != 0 ? 1U : 0U)]]
  TO [[0U]]
  CASE mxfp4_quant/seventeen_groups/eager
  SAYS "scales: 7 of 7 rows (rows 0-6) wrong"
  WHY "the exponent of the scale is truncated instead of rounded up")

plumb_mutant(normalize_keeps_0x80
  OP normalize_e4m3fn_to_e4m3fnuz FILE quantization/normalize_e4m3fn_to_e4m3fnuz.cu
  FROM [[code == 0x80U ? std::uint8_t{0} : code]]
  TO [[code]]
  CASE normalize_e4m3fn_to_e4m3fnuz/all_codes/eager
  SAYS "weight: differs from what fnuz needs in 3 of 3 rows (rows 0-2); row 0 differs in 1 of 256 places"
  WHY "-0 keeps the byte 0x80, which fnuz reads as NaN")

plumb_mutant(normalize_scales_halved
  OP normalize_e4m3fn_to_e4m3fnuz FILE quantization/normalize_e4m3fn_to_e4m3fnuz.cu
  FROM [=[2.0F * scale[index]]=]
  TO [=[0.5F * scale[index]]=]
  CASE normalize_e4m3fn_to_e4m3fnuz/blocks_in_both_directions/eager
  SAYS "weight_scale: differs from what fnuz needs in 2 of 2 rows (rows 0-1); row 0 differs in 3 of 3 places"
  WHY "scales are halved instead of doubled")

plumb_mutant(normalize_forgets_input_scale
  OP normalize_e4m3fn_to_e4m3fnuz FILE quantization/normalize_e4m3fn_to_e4m3fnuz.cu
  FROM [[double_scale(p.input_scale, p.input_scale_out, p.input_scales, index);]]
  TO [[]]
  CASE normalize_e4m3fn_to_e4m3fnuz/input_scales/eager
  SAYS "input_scale: differs from what fnuz needs in 1 of 1 rows (row 0); row 0 differs in 5 of 5 places"
  WHY "the scale of static activations is not doubled")

plumb_mutant(normalize_writes_only_what_changes
  OP normalize_e4m3fn_to_e4m3fnuz FILE quantization/normalize_e4m3fn_to_e4m3fnuz.cu
  FROM [[p.weight_out[row * p.weight_out_row_stride + column] = code]]
  TO [[if (code == 0x80U) p.weight_out[row * p.weight_out_row_stride + column] = code]]
  CASE normalize_e4m3fn_to_e4m3fnuz/out_of_place/eager
  SAYS "weight: differs from what fnuz needs in 20 of 20 rows (rows 0-19)"
  WHY "only bytes that change are written: right in place, wrong into another buffer")

plumb_mutant(group_quant_filler_always_0
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [[p.filler == PLUMB_FILLER_127 ? 127 : 0;]]
  TO [[0;]]
  CASE per_token_group_quant_fp8/filler_127/eager
  SAYS "expected 127"
  WHY "filler bytes are 0, where a scale of 1 is declared")

plumb_mutant(group_quant_padding_rows_kept
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [[padded ? (p.tokens + 3) / 4 * 4 : p.tokens;]]
  TO [[p.tokens;]]
  CASE per_token_group_quant_fp8/padding_rows_zero/eager
  SAYS "scales: "
  WHY "padding words behind the last token are not set to 0")
