# SPDX-License-Identifier: Apache-2.0
#
# Mutants of AITER's planner for MLA decode. faults/CMakeLists.txt explains the arguments of
# plumb_mutant(). FROM and TO are kernel text in brackets.

plumb_mutant(mla_plan_last_block_dropped
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[split ? at.partials : -1, mla_row_end(p, at.row));]]
  TO [[split ? at.partials : -1, mla_row_end(p, at.row) - (split ? kMlaKeysPerBlock : 0));]]
  CASE get_mla_metadata_v1/one_long/eager
  SAYS "are in no item"
  WHY "the last item of a split row ends before the row does")

plumb_mutant(mla_plan_block_twice
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[kMlaKeysPerBlock * at.block;]]
  TO [[kMlaKeysPerBlock * (at.block - (at.block > 0));]]
  CASE get_mla_metadata_v1/one_long/eager
  SAYS "on are in items"
  WHY "an item begins with the block that the item before it ended with")

plumb_mutant(mla_plan_of_row_0
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[return (mla_row_end(p, row) - mla_row_begin(p, row) + kMlaKeysPerBlock - 1) / kMlaKeysPerBlock;]]
  TO [[return (mla_row_end(p, row * 0) - p.kv_indptr[0] + kMlaKeysPerBlock - 1) / kMlaKeysPerBlock;]]
  CASE get_mla_metadata_v1/v32_decode/eager
  SAYS "work_info_set: "
  WHY "every row is cut as if it had the length of the first one")

plumb_mutant(mla_plan_groups_not_counted
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[return p.kv_indptr[row / p.qk_batch_ratio];]]
  TO [[return p.kv_indptr[row < p.batch ? row : p.batch];]]
  CASE get_mla_metadata_v1/heads_128/eager
  SAYS "work_info_set: "
  WHY "a group of heads reads the keys of the token with its own number")

plumb_mutant(mla_plan_rows_without_groups
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[  while (at.row < rows) {]]
  TO [[  while (at.row < rows && at.row < p.batch) {]]
  CASE get_mla_metadata_v1/heads_128/eager
  SAYS "are in no item"
  WHY "only the first group of heads of each token is planned")

plumb_mutant(mla_plan_partial_reused
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[    ++at.partials;
]]
  TO [[]]
  CASE get_mla_metadata_v1/v32_decode/eager
  SAYS "write partial"
  WHY "the last item of a split row and the first of the next one write the same partial result")

plumb_mutant(mla_plan_split_row_whole
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[add_mla_item(p, at, split ? at.partials : -1,]]
  TO [[add_mla_item(p, at, -1,]]
  CASE get_mla_metadata_v1/v32_decode/eager
  SAYS "says that it has all keys, and other items have some"
  WHY "the last item of a split row writes the output instead of a partial result")

plumb_mutant(mla_plan_whole_row_partial
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[add_mla_item(p, at, split ? at.partials : -1,]]
  TO [[add_mla_item(p, at, at.partials,]]
  CASE get_mla_metadata_v1/all_one/eager
  SAYS "has all keys and writes partial"
  WHY "a row that is not split writes a partial result, which the reduction skips")

plumb_mutant(mla_plan_reduce_map_stale
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[p.reduce_partial_map[at.listed++] = at.partials - i;]]
  TO [[{
      if (i > 0) p.reduce_partial_map[at.listed] = at.partials - i;
      ++at.listed;
    }]]
  CASE get_mla_metadata_v1/one_long/eager
  SAYS "reduce_partial_map: entry"
  WHY "the last partial of a row is not written to the list: the reduction reads an older step's")

plumb_mutant(mla_plan_final_map_stale
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[    p.reduce_final_map[2 * at.row + 1] = at.row + 1;
]]
  TO [[]]
  CASE get_mla_metadata_v1/one_long/eager
  SAYS "reduce_final_map: "
  WHY "the end of a row's queries is not written: the reduction goes on to rows of an older step")

plumb_mutant(mla_plan_list_without_last
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[for (int i = at.splits; i >= 0; --i)]]
  TO [[for (int i = at.splits; i > 0; --i)]]
  CASE get_mla_metadata_v1/one_long/eager
  SAYS "reduce_indptr: row"
  WHY "the list of a row leaves out its last partial")

plumb_mutant(mla_plan_tail_of_list_stale
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[row <= p.max_rows; row]]
  TO [[row <= rows; row]]
  CASE get_mla_metadata_v1/buffers_of_507/eager
  SAYS "reduce_indptr: entry"
  WHY "rows behind the batch keep the lists of a larger step, and the reduction works on them")

plumb_mutant(mla_plan_tail_of_list_first_lane
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[  listed = shuffle(all_lanes(), listed, 0, wave_size());
]]
  TO [[]]
  CASE get_mla_metadata_v1/buffers_of_507/eager
  SAYS "reduce_indptr: entry"
  WHY "only the first lane knows the total that fills the tail")

plumb_mutant(mla_plan_addresses_stale
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[  p.work_metadata_ptrs[1] = reinterpret_cast<std::int64_t>(p.work_info_set);
]]
  TO [[  if (p.max_rows < 0) p.work_metadata_ptrs[1] = 0;
]]
  CASE get_mla_metadata_v1/v32_decode/eager
  SAYS "work_metadata_ptrs: "
  WHY "the second address is not written: the decode kernel reads the plan of an older buffer")

plumb_mutant(mla_plan_addresses_swapped
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[reinterpret_cast<std::int64_t>(p.work_indptr);]]
  TO [[reinterpret_cast<std::int64_t>(p.reduce_indptr);]]
  CASE get_mla_metadata_v1/v32_decode/eager
  SAYS "work_metadata_ptrs: "
  WHY "the decode kernel takes the lists of the reduction for the items of compute units")

plumb_mutant(mla_plan_empty_row_without_item
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[  add_mla_item(p, at, split ?]]
  TO [[  if (mla_row_blocks(p, at.row) > 0) add_mla_item(p, at, split ?]]
  CASE get_mla_metadata_v1/zeros/eager
  SAYS "has no item"
  WHY "a row without keys has no item, so that its output is not written")

plumb_mutant(mla_plan_reads_past_batch
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[row < rows; row += wave_size()) {
    total]]
  TO [[row <= rows; row += wave_size()) {
    total]]
  CASE get_mla_metadata_v1/idle_units/eager
  SAYS "work_info_set: row"
  WHY "the sum of the blocks counts one row behind the batch, whose length is not in memory")

plumb_mutant(mla_plan_idle_units_unset
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[    take_mla_blocks(p, payload, at);
    p.work_indptr]]
  TO [[    if (at.row >= p.batch * p.qk_batch_ratio) break;
    take_mla_blocks(p, payload, at);
    p.work_indptr]]
  CASE get_mla_metadata_v1/idle_units/eager
  SAYS "work_indptr: entry"
  WHY "entries of compute units without work are not written, so that these units do an older plan's work")

plumb_mutant(mla_plan_lanes_of_first_wave_only
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[row < rows; row += wave_size()) {
    total]]
  TO [[row < rows && row < 32; row += wave_size()) {
    total]]
  CASE get_mla_metadata_v1/batch_512/eager
  SAYS "no item"
  WHY "only the first 32 rows count as work, so that the last compute unit ends before the last row")

plumb_mutant(mla_plan_behind_is_0
  OP get_mla_metadata_v1 FILE sparse_mla/get_mla_metadata_v1.cu
  FROM [[begin, end, behind, 0};]]
  TO [[begin, end, behind * 0, 0};]]
  CASE get_mla_metadata_v1/one_long/eager
  SAYS "keys are behind it, not"
  WHY "every item says that it is the last of its row, where the causal mask would end")
