// SPDX-License-Identifier: Apache-2.0
//
// Calls that are changed on their way to plumb's own kernel: what wrappers of kernels lose, mix up
// or decide for themselves.
#pragma once

#include <plumb/ops/hyper_connection.h>
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

// States are always e4m3fn. As fnuz their codes are worth half.
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
// The prefill's wrapper has no flag at all.
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

// 1024 tokens of a served model are 8 of the small geometry.
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

// The entry of plumb's own table whose calls `Fault` changes.
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

// In a build without CUDA both are the simulated ones.
template <class Fault>
Replacement changed() {
  return {ChangedCall<Fault, true>::entry(), ChangedCall<Fault, false>::entry()};
}

}  // namespace plumb::cases
