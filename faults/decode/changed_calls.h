// SPDX-License-Identifier: Apache-2.0
//
// Faults of the wrappers around kernels: parameters of a call are changed before plumb's own kernel
// gets them.
#pragma once

#include <plumb/ops/hyper_connection.h>
#include <plumb/ops/indexer.h>
#include <plumb/ops/sparse_mla.h>
#include <plumb/ops/top_k.h>

#include <string_view>
#include <utility>

#include "device/device.h"
#include "faults/replaced_op.h"

namespace plumb::cases {

struct HcEpsLost {
  using Params = plumb_hc_head_params;
  static constexpr const char* op = "hc_head";
  static void change(Params& p) { p.hc_eps = 0; }
};

// The extra cache is always e4m3fn. Read as e4m3fnuz, its codes have half their value.
struct FnReadAsFnuz {
  using Params = plumb_sparse_mla_decode_params;
  static constexpr const char* op = "sparse_mla_decode";
  static void change(Params& p) { p.extra_cache.dialect = PLUMB_E4M3FNUZ; }
};
struct OneDialectForBoth {
  using Params = plumb_sparse_mla_decode_params;
  static constexpr const char* op = "sparse_mla_decode";
  static void change(Params& p) { p.extra_cache.dialect = p.main_cache.dialect; }
};
// The gather kernel of the prefill always gets e4m3fn, as from a wrapper that does not pass on the
// cache's FP8 dialect.
struct DialectDroppedByGather {
  using Params = plumb_dequantize_and_gather_k_cache_params;
  static constexpr const char* op = "dequantize_and_gather_k_cache";
  static void change(Params& p) { p.cache.dialect = PLUMB_E4M3FN; }
};

struct StridesSwapped {
  using Params = plumb_mhc_post_params;
  static constexpr const char* op = "mhc_post";
  static void change(Params& p) { std::swap(p.residual_token_stride, p.residual_slot_stride); }
};

// Runs fewer Sinkhorn iterations for many tokens. More than 8 tokens of the small geometry stand
// for more than 1024 of a served model.
struct LessExactFromManyTokens {
  using Params = plumb_mhc_fused_post_pre_params;
  static constexpr const char* op = "mhc_fused_post_pre";
  static void change(Params& p) {
    if (p.tokens > 8) p.sinkhorn_iterations = 3;
  }
};

struct StartsTakenForEnds {
  using Params = plumb_top_k_per_row_prefill_params;
  static constexpr const char* op = "top_k_per_row_prefill";
  static void change(Params& p) { p.row_ends = p.row_starts; }
};

// The planner of an attention over two caches gets the lengths of one cache only.
struct PlanWithoutExtra {
  using Params = plumb_get_decoding_sched_meta_params;
  static constexpr const char* op = "get_decoding_sched_meta";
  static void change(Params& p) {
    p.extra_topk = 0;
    p.extra_topk_length = p.extra_topk_indptr = nullptr;
  }
};
struct LastKeyNotGathered {
  using Params = plumb_cp_gather_indexer_k_quant_cache_params;
  static constexpr const char* op = "cp_gather_indexer_k_quant_cache";
  static void change(Params& p) { --p.keys; }
};

// An entry of plumb's own table. `Fault` changes its calls.
template <class Fault, bool simulated>
struct ChangedCall {
  static const device::OpEntry* original() {
    const char* const platform = simulated ? "sim-sm90" : "cuda-sm90";
    return device::find_entry(device::builtin_implementation(platform), Fault::op);
  }
  static plumb_status launch(const void* params) {
    auto p = *static_cast<const typename Fault::Params*>(params);
    Fault::change(p);
    return original()->launch(&p);
  }
  static device::OpEntry entry() {
    device::OpEntry changed = *original();
    changed.launch = &launch;
    return changed;
  }
};

// In a build without CUDA both entries are simulated ones.
template <class Fault>
Replacement changed() {
  return {ChangedCall<Fault, true>::entry(), ChangedCall<Fault, false>::entry()};
}

}  // namespace plumb::cases
