// SPDX-License-Identifier: Apache-2.0
//
// Records of the calls that only steps with prefills make, or with decode requests of different
// length.
#pragma once

#include "decode/recording/call_record.h"
#include "device/plumb_ops.h"

namespace plumb::cases {

CallRecord of(const plumb_pack_seq_params& p);
CallRecord of(const plumb_unpack_seq_params& p);
CallRecord of(const plumb_fp8_mqa_logits_params& p);
CallRecord of(const plumb_top_k_per_row_prefill_params& p);
CallRecord of(const plumb_dequantize_and_gather_k_cache_params& p);
CallRecord of(const plumb_combine_topk_swa_indices_ragged_params& p);
CallRecord of(const plumb_sparse_mla_prefill_params& p);

}  // namespace plumb::cases
