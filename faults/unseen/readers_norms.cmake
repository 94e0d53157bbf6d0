# SPDX-License-Identifier: Apache-2.0
#
# Defects planted by people who had read the kernels and the list of missed defects, but neither the
# rows of cases nor the detectors. This file: norms, hyper-connections, quantisation and routers.
plumb_unseen(fused_add_residual_row_in_32_bits
  OP fused_add_rms_norm FILE norm/fused_add_rms_norm.cu
  FROM [==[  const Sum row{p.x + team.row * p.x_row_stride, p.residual + team.row * p.residual_row_stride};]==]
  TO [==[  const int residual_row = static_cast<int>(team.row * p.residual_row_stride);
  const Sum row{p.x + team.row * p.x_row_stride, p.residual + residual_row};]==]
  CLASS [==[32-bit address: one tensor's row offset]==]
  WHY [==[The offset of a residual row is kept in an int while that of x is not: in a sparse view with residual_row_stride 2^30 and 3 tokens (span past 2^31, few elements) row 2 is read from and written to offset -2^31.]==])
plumb_unseen(group_quant_scale_floor_after_the_power
  OP per_token_group_quant_fp8 FILE quantization/per_token_group_quant_fp8.cu
  FROM [==[  const float exact =
      at_least(p.scale_floor, at_least(p.amax_floor, amax) / quantisation_largest(p.dialect));
  return p.scale_format == PLUMB_SCALE_F32 ? exact : decode_ue8m0(encode_ue8m0(exact));]==]
  TO [==[  const float exact = at_least(p.amax_floor, amax) / quantisation_largest(p.dialect);
  const bool is_power = p.scale_format != PLUMB_SCALE_F32;
  return at_least(p.scale_floor, is_power ? decode_ue8m0(encode_ue8m0(exact)) : exact);]==]
  CLASS [==[extremes of values: order of floor and rounding]==]
  WHY [==[The scale's floor is applied after the rounding up to a power of two: with PLUMB_SCALE_F32_POWER_OF_TWO, scale_floor 1e-10 and a group of zeros the stored scale is 1e-10 instead of 2^-33 = 1.16e-10, and packed, a group of values 1e-8 gets codes of x / 1e-10 under the byte of 2^-33.]==])
plumb_unseen(grouped_topk_22_is_no_small_topk
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [==[p.experts <= 512 && (p.topk <= 8 || p.topk == 22);]==]
  TO [==[p.experts <= 512 && p.topk <= 8;]==]
  CLASS [==[single value of a count in a table of shapes]==]
  WHY [==[The shape class of the small-expert kernel loses topk 22: with PLUMB_DOMAIN_SMALL_EXPERTS_IN_FP32, one group, 512 experts, topk 22, bf16 logits and PLUMB_ROUTER_LOGITS_FORMAT scores, bias and sums are rounded to bf16 where fp32 holds, so that weights are off by up to 2^-9 and near choices swap.]==])
plumb_unseen(grouped_topk_equal_groups_are_all_kept
  OP grouped_topk FILE router/grouped_topk.cu
  FROM [==[  const std::uint64_t rank = rank_of(p.ties, score, lane_index());]==]
  TO [==[  const std::uint32_t rank = choice_key(score);]==]
  CLASS [==[ties at the cut]==]
  WHY [==[Groups are compared by score alone, so that equal scores at the cut keep more than topk_group groups: two groups with equal logits and bias, topk_group 1 and topk 2 give the best expert of each group instead of the two best of group 0.]==])
plumb_unseen(hash_routing_experts_up_to_the_stride
  OP hash_routing FILE router/hash_routing.cu
  FROM [==[id >= 0 && id < p.experts;]==]
  TO [==[id >= 0 && id < p.logits_row_stride;]==]
  CLASS [==[bound taken from the stride]==]
  WHY [==[A table id counts as an expert up to the logits' row stride: with PLUMB_STRANGERS_IGNORED, experts 250, logits_row_stride 256 and an id 252 in the table its place is written and the score of a padding element joins the renormalising sum, where the place should stay untouched.]==])
plumb_unseen(hc_head_rms_with_the_gates_eps
  OP hc_head FILE hyper_connection/hc_head.cu
  FROM [==[+ p.rms_eps);]==]
  TO [==[+ p.hc_eps);]==]
  CLASS [==[parameter ignored: another one of the same usual value]==]
  WHY [==[The mean square gets hc_eps instead of rms_eps, which the model sets alike: with rms_eps 1e-6, hc_eps 1e-2 and hidden states of size 0.05 (mean square 0.0025) r is 8.9 instead of 20, and with it every mix.]==])
plumb_unseen(inverse_rope_head_offset_in_int
  OP inverse_rope FILE norm/inverse_rope.cu
  FROM [==[    std::uint16_t* y = to + head * p.out_head_stride + dim;]==]
  TO [==[    const int shift = static_cast<int>(head * p.out_head_stride);
    std::uint16_t* y = to + shift + dim;]==]
  CLASS [==[32-bit address: inner stride times its index]==]
  WHY [==[The head's offset in out is an int for the rotated dims only: into a head-major out with out_head_stride 2^30 (or 65536 tokens of 512, 128 heads) the rotated dims of head 2 (of head 64) and later are written 2^32 elements too early and the right places stay unwritten.]==])
plumb_unseen(mhc_broadcast_copies_kept_vectors_only
  OP mhc_pre_broadcast FILE hyper_connection/mhc_pre_broadcast.cu
  FROM [==[    for (std::int64_t h = thread_index() * kBf16x8; h < p.hidden; h += block_size() * kBf16x8) {]==]
  TO [==[    PLUMB_UNROLL
    for (int i = 0; i < kKept; ++i) {
      const std::int64_t h = kept_column(i);
      if (h >= p.hidden) break;]==]
  CLASS [==[literal trip count: widths above every published one]==]
  WHY [==[The copy to the four streams has the trip count of the vectors that a thread keeps, four: all of a row up to hidden 8192, but with hidden 8200 or 16384 the columns behind the fourth round of residual_out are never written.]==])
plumb_unseen(mhc_fused_unrounded_rows_exclusive
  OP mhc_fused_post_pre FILE hyper_connection/mhc_fused_post_pre.cu
  FROM [==[if (p.tokens <= p.unrounded_rows) {]==]
  TO [==[if (p.tokens < p.unrounded_rows) {]==]
  CLASS [==[rounding chosen at the boundary of a count]==]
  WHY [==[`up to unrounded_rows tokens` includes that number, here it does not: with tokens == unrounded_rows == 16 the sums are of the streams rounded to bf16 instead of fp32, so that partial_mixes and partial_square_sums differ by about 2^-9 of each term, far above fp32 rounding.]==])
plumb_unseen(mhc_post_grid_capped_at_65535
  OP mhc_post FILE hyper_connection/mhc_post.cu
  FROM [==[  const LaunchShape shape = token_shape(p.tokens, p.hidden, device.wave_size);]==]
  TO [==[  constexpr std::int64_t kMostBlocks = 65535;
  const std::int64_t blocks = p.tokens < kMostBlocks ? p.tokens : kMostBlocks;
  const LaunchShape shape = token_shape(blocks, p.hidden, device.wave_size);]==]
  CLASS [==[count: limit of another grid dimension]==]
  WHY [==[The grid's x is capped at y's limit although every block does one token and none loops: with 65,540 tokens (hidden 8 will do) tokens 65,535 to 65,539 of out are not written.]==])
plumb_unseen(mhc_pre_empty_part_leaves_old_sums
  OP mhc_pre FILE hyper_connection/mhc_pre.cu
  FROM [==[  PLUMB_SHARED(float, weights, kStaged);
  mix_partials(p, StoredStreams{p}, weights);]==]
  TO [==[  PLUMB_SHARED(float, weights, kStaged);
  const int split = block_index_y();
  if (part_begin(p, split) == part_begin(p, split + 1)) return;
  mix_partials(p, StoredStreams{p}, weights);]==]
  CLASS [==[state from the previous call: nothing stored for an empty part]==]
  WHY [==[Parts of K without a column return before they store their zero sums, and the second stage adds what an earlier call left there: with hidden 1 (K = 4) and splits 8 half of the partial rows are those of the previous user of the buffer.]==])
plumb_unseen(mtp_input_position_of_the_block
  OP mtp_input_rms_norm FILE norm/mtp_input_rms_norm.cu
  FROM [==[p.positions[token] != 0]==]
  TO [==[p.positions[block_index_x()] != 0]==]
  CLASS [==[wrong row's value where several rows share a block]==]
  WHY [==[The position is that of the block's number and not of the team's token, the same only where a row takes a whole block: with hidden 512 (four rows per block) and positions 0, 1, 2, ... the embeddings of tokens 1 to 3 are zeroed too, while a position 0 at token 5 is not masked.]==])
plumb_unseen(mtp_shared_head_shape_kept_by_element_count
  OP mtp_shared_head_rms_norm FILE norm/mtp_shared_head_rms_norm.cu
  FROM [==[  const LaunchShape shape = row_shape(p.tokens, p.hidden, wave);]==]
  TO [==[  // Calls of one size, as decode repeats them, keep their shape.
  static std::int64_t shaped_elements = 0;
  static LaunchShape shape{};
  if (p.tokens * p.hidden != shaped_elements) {
    shape = row_shape(p.tokens, p.hidden, wave);
    shaped_elements = p.tokens * p.hidden;
  }]==]
  CLASS [==[state from the previous call: launch shape cached under an ambiguous key]==]
  WHY [==[The launch shape is cached under the product tokens * hidden: a call with 4 tokens of 8192 columns followed by one with 8 tokens of 4096 launches four blocks, so that rows 4 to 7 of the second call are never written.]==])
plumb_unseen(mxfp4_code_rows_in_32_bits
  OP mxfp4_quant FILE quantization/mxfp4_quant.cu
  FROM [==[  std::uint8_t* q = p.q + token * p.q_row_stride + group * (kMxGroup / 2);]==]
  TO [==[  const std::uint32_t first = static_cast<std::uint32_t>(token * p.q_row_stride);
  std::uint8_t* q = p.q + first + group * (kMxGroup / 2);]==]
  CLASS [==[32-bit address: unsigned bytes]==]
  WHY [==[The byte offset of a row of codes is cut to 32 unsigned bits, which a span past 2^31 does not show but one past 2^32 does: with q_row_stride 2^31 + 64 and 3 tokens the codes of token 2 land at byte 128 behind token 0's start and its own place stays unwritten.]==])
plumb_unseen(normalize_dense_input_means_dense_output
  OP normalize_e4m3fn_to_e4m3fnuz FILE quantization/normalize_e4m3fn_to_e4m3fnuz.cu
  FROM [==[  const std::int64_t row = index / p.columns, column = index % p.columns;]==]
  TO [==[  // Dense rows are one long row, and need no division.
  const bool dense = p.weight_row_stride == p.columns;
  const std::int64_t row = dense ? 0 : index / p.columns;
  const std::int64_t column = dense ? index : index % p.columns;]==]
  CLASS [==[strides: a shortcut decided by one of two tensors]==]
  WHY [==[Whether rows are dense is asked of the input alone: with columns 96, weight_row_stride 96 and weight_out_row_stride 128 the output is written densely, so that row 1 begins at byte 96 of weight_out, in the padding, instead of at byte 128.]==])
plumb_unseen(q_head_eps_as_a_floor
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [==[  float r = rsqrt_approx(sum_of_lanes(squares) / static_cast<float>(kHeadDim) + p.eps);]==]
  TO [==[  const float mean = sum_of_lanes(squares) / static_cast<float>(kHeadDim);
  float r = rsqrt_approx(mean > p.eps ? mean : p.eps);]==]
  CLASS [==[extremes of values: small rows near eps]==]
  WHY [==[eps is a lower limit of the mean square and not added to it, which only rows with a mean square near eps show: with eps 1e-6 and a head whose entries are all 1e-3 in size the result is 1 instead of 0.707.]==])
plumb_unseen(q_head_in_place_ignores_head_stride
  OP q_head_rms_norm_rope FILE norm/q_head_rms_norm_rope.cu
  FROM [==[  const std::uint16_t* q = p.q ? p.q + token * p.q_token_stride + head * kHeadDim : out;]==]
  TO [==[  const std::uint16_t* q = (p.q ? p.q + token * p.q_token_stride : p.out + token * p.out_token_stride) +
                           head * kHeadDim;]==]
  CLASS [==[optional input: its substitute has another stride]==]
  WHY [==[Where q is null the heads of out are read as if contiguous: in place with out_head_stride 576 (heads >= 2) head 1 is made of columns 512 to 1023 of the token, that is of head 0's padding and a part of head 1.]==])
plumb_unseen(q_kv_blocks_of_kv_counted_as_those_of_q
  OP q_kv_rms_norm FILE norm/q_kv_rms_norm.cu
  FROM [==[  const std::int64_t blocks = q_blocks + row_blocks(p.tokens, p.kv_hidden, wave, block);]==]
  TO [==[  const std::int64_t blocks = 2 * q_blocks;]==]
  CLASS [==[count: two widths in different launch classes]==]
  WHY [==[As many blocks are launched for kv as for q, which suffices unless q's rows are single waves and kv's are blocks: with q_hidden 512, kv_hidden 2048 and 8 tokens (wave 32) q packs two rows into a block, so that kv gets 4 blocks for its 8 rows and rows 4 to 7 of out_kv stay unwritten.]==])
plumb_unseen(rms_norm_vectors_by_strides_alone
  OP rms_norm FILE norm/rms_norm.cu
  FROM [==[has_whole_vectors({p.hidden, p.x_row_stride, p.out_row_stride}]==]
  TO [==[has_whole_vectors({p.x_row_stride, p.out_row_stride}]==]
  CLASS [==[dimension class: width not a multiple of the vector]==]
  WHY [==[The vector path is chosen from strides and addresses and forgets the width: with hidden 1020 in rows of stride 1024 the four padding columns of x enter the sum of squares (divided by 1020), weight is read past its end and the output's padding is overwritten.]==])
plumb_unseen(sqrt_softplus_topk_sum_plus_tiny
  OP sqrt_softplus_topk FILE router/sqrt_softplus_topk.cu
  FROM [==[score / divisor_of(p, sum)]==]
  TO [==[score / (divisor_of(p, sum) + 1e-20F)]==]
  CLASS [==[extremes of values: all scores tiny]==]
  WHY [==[The 1e-20 of the sigmoid router is added to the sum, invisible beside ordinary scores: with PLUMB_SOFTPLUS_LOG1P, renormalize, topk 1 and all logits near -86 the score is about 2e-19 and the weight 0.95 instead of 1, and with PLUMB_ZERO_SUM_NAN a row of zero scores gets 0 instead of NaN.]==])
