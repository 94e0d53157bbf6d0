# SPDX-License-Identifier: Apache-2.0
#
# Mutants of this family (cases/faults/CMakeLists.txt says what the words mean). Text stands
# between brackets.

plumb_mutant(mhc_mean_square_over_hidden
  OP mhc_pre FILE mhc_pre.cu
  FROM [[static_cast<float>(kStreams * p.hidden)]]
  TO [[static_cast<float>(p.hidden)]]
  CASE mhc_pre/rows_17/eager
  SAYS "rows 0-16 of 17"
  WHY "the mean square is taken over H instead of 4 H")

plumb_mutant(mhc_row_sum_unguarded
  OP mhc_pre FILE mhc_pre.cu
  FROM [[if (lane_index() < kRowsPerWave && tile_row < rows_in_tile) {]]
  TO [[if (tile_row < rows_in_tile) {]]
  CASE mhc_pre/rows_64/eager
  SAYS "elements in rows 16-"
  WHY "every lane stores a row sum, so waves overwrite the rows of later waves (aiter #3033)")

plumb_mutant(mhc_comb_transposed
  OP mhc_post FILE mhc_post.cu
  FROM [=[comb[kStreams * m + n] * residual[m]]=]
  TO [=[comb[kStreams * n + m] * residual[m]]=]
  CASE mhc_post/flash_two_tokens/eager
  SAYS "elements in rows 0-7 of 8"
  WHY "the residual is mixed by the transposed matrix")

plumb_mutant(hc_head_without_eps
  OP hc_head FILE hc_head.cu
  FROM [[sigmoid(mix * p.scale[0] + p.base[j]) + p.hc_eps;]]
  TO [[sigmoid(mix * p.scale[0] + p.base[j]);]]
  CASE hc_head/closed_gates/eager
  SAYS "elements in rows 0-23 of 24"
  WHY "hc_eps is lost (vLLM #42604)")
