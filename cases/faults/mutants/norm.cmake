# SPDX-License-Identifier: Apache-2.0
#
# Mutants of this family (cases/faults/CMakeLists.txt says what the words mean). Text stands
# between brackets.

plumb_mutant(mtp_position_mask_missing
  OP mtp_input_rms_norm FILE mtp_input_rms_norm.cu
  FROM [[const bool keep = p.positions[token] != 0;]]
  TO [[const bool keep = true;]]
  CASE mtp_input_rms_norm/many_positions/eager
  SAYS "elements in rows 1, 11, 14-15, 22, 24, 26, "
  WHY "the embedding of position 0 reaches its norm")

plumb_mutant(mtp_position_mask_on_hidden
  OP mtp_input_rms_norm FILE mtp_input_rms_norm.cu
  FROM [[true, false, wave_partials);]]
  TO [[p.positions[token] != 0, false, wave_partials);]]
  CASE mtp_input_rms_norm/many_positions/eager
  SAYS "elements in rows 4-7, 44-47, 56-63, 88-91, 96-99, 104-107, "
  WHY "the mask of position 0 is applied to the hidden states too")

plumb_mutant(rms_norm_divides_by_block
  OP rms_norm FILE row_norm.h
  FROM [[static_cast<float>(hidden)]]
  TO [[static_cast<float>(kRowNormBlock)]]
  CASE rms_norm/hidden_257/eager
  SAYS "elements in rows 0-8 of 9"
  WHY "the mean is taken over the block instead of the width")

plumb_mutant(rms_norm_truncates
  OP rms_norm FILE bf16.h
  FROM [[bits + 0x7fffu + ((bits >> 16) & 1u)]]
  TO [[bits]]
  CASE rms_norm/v4_flash_hidden/eager
  SAYS "elements in rows 0-4 of 5"
  WHY "the output is truncated to bf16 instead of rounded")

plumb_mutant(rms_norm_row_stride_ignored
  OP rms_norm FILE rms_norm.cu
  FROM [[p.x + row * p.x_row_stride]]
  TO [[p.x + row * p.hidden]]
  CASE rms_norm/kv_latent_slice/eager
  SAYS "rows 1-8 of 9"
  WHY "strided rows are read as if they were contiguous")
