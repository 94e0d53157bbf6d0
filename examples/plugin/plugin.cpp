// SPDX-License-Identifier: Apache-2.0
//
// A plug-in for plumb's simulated platforms: two ops with one entry each. It is built twice. With
// EXAMPLE_FAULTS it has two planted mistakes: position 0 is not masked, and the last column of
// every sequence is left out.
#include <plumb/plumb_plugin.h>

#include "kernels.h"

namespace {

const plumb_host* host;

#ifdef EXAMPLE_FAULTS
constexpr bool kFaults = true;
#else
constexpr bool kFaults = false;
#endif

void mtp_input_rms_norm_kernel(const void* arguments) {
  const auto& p = *static_cast<const plumb_mtp_input_rms_norm_params*>(arguments);
  for (std::int64_t token = 0; token < p.tokens; ++token) {
    const bool keep = kFaults || p.positions[token] != 0;
    rms_norm_row(p.embeds + token * p.hidden, p.enorm_weight,
                 p.out_embeds + token * p.out_embeds_row_stride, p.hidden, p.eps, keep);
    for (std::int64_t slot = 0; slot < p.hc_mult; ++slot) {
      const std::int64_t from = (token * p.hc_mult + slot) * p.hidden;
      const std::int64_t to = token * p.out_hidden_token_stride + slot * p.out_hidden_slot_stride;
      rms_norm_row(p.previous_hidden + from, p.hnorm_weight, p.out_hidden + to, p.hidden, p.eps,
                   true);
    }
  }
}

void top_k_per_row_decode_kernel(const void* arguments) {
  const auto& p = *static_cast<const plumb_top_k_per_row_decode_params*>(arguments);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int32_t* lengths = p.seq_lens + row / p.next_n * p.seq_lens_row_stride;
    const std::int64_t query = row % p.next_n;
    const std::int64_t end =
        p.seq_lens_dims == 2 ? lengths[query] : lengths[0] - p.next_n + query + (kFaults ? 0 : 1);
    const auto* logits = static_cast<const float*>(p.logits) + row * p.logits_row_stride;
    top_k_row(logits, p.logits_column_stride, std::max<std::int64_t>(end, 0), p.k,
              p.indices + row * p.indices_row_stride);
  }
}

// Launcher of an op: enqueues its kernel with a copy of the parameters.
template <typename Params>
plumb_status enqueue(const char* name, void (*kernel)(const void*), const void* params) {
  const plumb_stream stream = static_cast<const Params*>(params)->stream;
  const plumb_device* device = host->device(host->context, stream);
  if (device == nullptr || !device->simulated) {
    host->explain(host->context, "these kernels run on simulated platforms only");
    return PLUMB_UNSUPPORTED;
  }
  return host->launch(host->context, name, kernel, params, sizeof(Params), stream);
}

plumb_status mtp_input_rms_norm(const void* params) {
  return enqueue<plumb_mtp_input_rms_norm_params>("mtp_input_rms_norm_kernel",
                                                  &mtp_input_rms_norm_kernel, params);
}

plumb_status top_k_per_row_decode(const void* params) {
  const auto& p = *static_cast<const plumb_top_k_per_row_decode_params*>(params);
  if (p.logits_format != PLUMB_LOGITS_F32) {
    host->explain(host->context, "this kernel reads fp32 logits only");
    return PLUMB_UNSUPPORTED;
  }
  return enqueue<plumb_top_k_per_row_decode_params>("top_k_per_row_decode_kernel",
                                                    &top_k_per_row_decode_kernel, params);
}

// Declared numerics of the kernels, from which bounds follow: see docs/plugins.md of plumb.
plumb_numerics norm_numerics() {
  plumb_numerics numerics{};
  numerics.struct_size = sizeof numerics;
  numerics.product = numerics.accumulator = numerics.probability = PLUMB_F32;
  numerics.chains = 1;        // one sequential sum
  numerics.function_ulp = 2;  // a square root and a division
  numerics.deterministic = 1;
  return numerics;
}

plumb_numerics top_k_numerics() {
  plumb_numerics numerics{};
  numerics.struct_size = sizeof numerics;
  numerics.product = numerics.accumulator = numerics.probability = PLUMB_F32;
  numerics.chains = 1;
  numerics.deterministic = 1;
  numerics.index_order = PLUMB_INDICES_BY_KEY;
  numerics.equal_keys = PLUMB_EQUAL_KEYS_LOWEST_INDEX;
  return numerics;
}

}  // namespace

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  static const plumb_numerics norm = norm_numerics(), top_k = top_k_numerics();
  static const plumb_op_entry entries[] = {
      {"mtp_input_rms_norm", &mtp_input_rms_norm, &norm, nullptr, "rounding=once"},
      {"top_k_per_row_decode", &top_k_per_row_decode, &top_k, nullptr, "nan_order=sign_ordered"}};
  static const plumb_plugin_table table = {PLUMB_ABI_VERSION,
                                           sizeof(plumb_plugin_table),
                                           kFaults ? "wrong_example" : "right_example",
                                           "1.0",
                                           entries,
                                           sizeof(plumb_op_entry),
                                           2};
  if (services->abi_version == PLUMB_ABI_VERSION) host = services;
  return &table;
}
