// SPDX-License-Identifier: Apache-2.0
#include "tests/support/foreign_defects.h"

#include <plumb/ops/cache.h>
#include <plumb/ops/hyper_connection.h>
#include <plumb/ops/indexer.h>
#include <plumb/ops/metadata.h>
#include <plumb/ops/norm.h>
#include <plumb/ops/router.h>

#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "device/forwarding_device.h"
#include "faults/replaced_op.h"

namespace plumb::tests {

namespace {

using cases::DecodeSetup;

const device::OpEntry& right(std::string_view op) {
  return *device::find_entry(device::builtin_implementation("sim-sm90"), op);
}

// Makes a defect: an op whose parameters are changed before it is launched.
template <class Params>
using Change = void (*)(Params&);

template <class Params, Change<Params> kChange>
ForeignDefect changed(const char* name, const char* op) {
  static const device::OpEntry* entry = nullptr;
  entry = &right(op);
  device::OpEntry wrong = *entry;
  wrong.launch = [](const void* given) {
    Params params = *static_cast<const Params*>(given);
    kChange(params);
    return entry->launch(&params);
  };
  return {name, [wrong](DecodeSetup setup) {
            setup.implementation = cases::with_op_replaced({wrong, {}});
            return setup;
          }};
}

void norm_with_eps_1(plumb_q_kv_rms_norm_params& p) { p.eps = 1; }
void norm_of_row_0(plumb_rms_norm_params& p) { p.x_row_stride = 0; }
void rope_one_position_on(plumb_q_head_rms_norm_rope_params& p) { p.cos_sin += 64; }
void rope_of_one_token_less(plumb_inverse_rope_params& p) { p.tokens -= 1; }
void other_softmax_scale(plumb_sparse_mla_decode_params& p) { p.sm_scale *= 1.25F; }
void scale_of_nan(plumb_sparse_mla_decode_params& p) {
  p.sm_scale = std::numeric_limits<float>::quiet_NaN();
}
void no_sink(plumb_sparse_mla_decode_params& p) { p.attn_sink = nullptr; }
void window_of_one_less(plumb_swa_decode_metadata_params& p) { p.window -= 1; }
void last_token_not_inserted(plumb_quantize_and_insert_k_cache_params& p) { p.tokens -= 1; }
void not_renormalized(plumb_sqrt_softplus_topk_params& p) { p.renormalize = 0; }
void factor_twice(plumb_sqrt_softplus_topk_params& p) { p.routed_scaling_factor *= 2; }
void head_scale_lost(plumb_indexer_q_rope_quant_params& p) { p.head_scale = 1; }
void nothing_mixed(plumb_mhc_post_params& p) { p.tokens = 0; }
void last_token_not_mixed(plumb_mhc_post_params& p) { p.tokens -= 1; }
void last_entry_lost(plumb_compute_global_topk_ragged_indices_and_indptr_params& p) { p.topk -= 1; }

// Overwrites a byte of a weight after each replay.
class StrayWrite final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void* allocate(std::size_t bytes, std::string_view label) override {
    void* memory = ForwardingDevice::allocate(bytes, label);
    if (label == "layer 1 q_norm") hit_ = memory;
    return memory;
  }
  void replay(device::GraphExec graph, device::Stream stream) override {
    ForwardingDevice::replay(graph, stream);
    if (hit_ != nullptr) ForwardingDevice::fill(hit_, 0x5a, 1, stream);
  }

 private:
  void* hit_ = nullptr;
};

DecodeSetup with_stray_write(DecodeSetup setup) {
  setup.wrap = [](std::unique_ptr<device::Device> inner) -> std::unique_ptr<device::Device> {
    return std::make_unique<StrayWrite>(std::move(inner));
  };
  return setup;
}

// Policies that write padding to the second slot, or give padding a length.
struct PaddingInSlot1 final : device::decode::InputsPolicy {
  std::int64_t padding_slot() const override { return 1; }
};
struct PaddingOfTwo final : device::decode::InputsPolicy {
  std::int32_t padding_length() const override { return 2; }
};

template <class Policy>
DecodeSetup with_inputs(DecodeSetup setup) {
  setup.policies.inputs = std::make_shared<Policy>();
  return setup;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ForeignDefect& defect) {
  return out << defect.name;
}

std::vector<ForeignDefect> foreign_defects() {
#define PLUMB_CHANGED(op, change) changed<plumb_##op##_params, change>(#change, #op)
  return {PLUMB_CHANGED(q_kv_rms_norm, norm_with_eps_1),
          PLUMB_CHANGED(rms_norm, norm_of_row_0),
          PLUMB_CHANGED(q_head_rms_norm_rope, rope_one_position_on),
          PLUMB_CHANGED(inverse_rope, rope_of_one_token_less),
          PLUMB_CHANGED(sparse_mla_decode, other_softmax_scale),
          PLUMB_CHANGED(sparse_mla_decode, scale_of_nan),
          PLUMB_CHANGED(sparse_mla_decode, no_sink),
          PLUMB_CHANGED(swa_decode_metadata, window_of_one_less),
          PLUMB_CHANGED(quantize_and_insert_k_cache, last_token_not_inserted),
          PLUMB_CHANGED(sqrt_softplus_topk, not_renormalized),
          PLUMB_CHANGED(sqrt_softplus_topk, factor_twice),
          PLUMB_CHANGED(indexer_q_rope_quant, head_scale_lost),
          PLUMB_CHANGED(mhc_post, nothing_mixed),
          PLUMB_CHANGED(mhc_post, last_token_not_mixed),
          PLUMB_CHANGED(compute_global_topk_ragged_indices_and_indptr, last_entry_lost),
          {"stray_write", with_stray_write},
          {"padding_in_slot_1", with_inputs<PaddingInSlot1>},
          {"padding_of_two", with_inputs<PaddingOfTwo>}};
#undef PLUMB_CHANGED
}

}  // namespace plumb::tests
