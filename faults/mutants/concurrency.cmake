# SPDX-License-Identifier: Apache-2.0
#
# Mutants that only concurrent calls show: all calls of a kernel share memory that each call needs for
# itself. They pass every case without concurrency (tests/cases/concurrent_test.cpp).
# faults/CMakeLists.txt explains the arguments of plumb_mutant(). FROM and TO are kernel text in
# brackets.

plumb_mutant(rms_norm_scratch_of_all_calls
  OP rms_norm FILE norm/rms_norm.cu
  FROM [[PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);]]
  TO [[static float wave_partials[kMostWavesOfRowNorm];]]
  CASE rms_norm/v4_pro_hidden/concurrent
  SAYS "of 4, step"
  WHY "the partial sums of a row lie in one global buffer, which all calls share")

plumb_mutant(top_k_scratch_of_all_calls
  OP top_k_per_row_decode FILE top_k/top_k_per_row_decode.cu
  FROM [[PLUMB_SHARED(TopKShared, shared, 1);]]
  TO [[static TopKShared global; TopKShared* const shared = &global;]]
  CASE top_k_per_row_decode/k512_around_k/concurrent
  SAYS "of 4, step"
  WHY "the histogram of a row lies in one global buffer, which all calls share")

plumb_mutant(ragged_rows_handed_out_to_all_calls
  OP build_ragged_indices_from_dense FILE metadata/build_ragged_indices_from_dense.cu
  FROM [[const std::int64_t row = block_index_x();
  const std::int32_t* from = row_of(p, row);
  const std::int32_t length = clamped_length(p, row);
  std::int32_t end]]
  TO [[PLUMB_SHARED(std::int64_t, mine, 1); static std::int64_t handed_out = 0;
       if (thread_index() == 0) *mine = handed_out++ % p.rows;
       block_sync(); const std::int64_t row = *mine;
  const std::int32_t* from = row_of(p, row);
  const std::int32_t length = clamped_length(p, row);
  std::int32_t end]]
  CASE build_ragged_indices_from_dense/swa_window/concurrent
  SAYS "of 4, step"
  WHY "blocks take their row from one global counter, which all calls share")
