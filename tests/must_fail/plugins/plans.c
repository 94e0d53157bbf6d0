/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_mla_decode as far as its tile plan goes: a call that finds none fills one in, and a call
 * that finds one says whether all is as the first call has left it. */
#include <plumb/plumb_plugin.h>
#include <stddef.h>

static plumb_status launch(const void* params) {
  const plumb_sparse_mla_decode_params* p = params;
  static const plumb_mla_plan* first;
  if (!p->plan->planned) {
    first = p->plan;
    p->plan->planned = 1;
    return PLUMB_OK;
  }
  const int same = p->plan == first && (const void*)p->plan->tiles == (const void*)p->out;
  return same ? PLUMB_OK : PLUMB_INVALID_ARGUMENT;
}

static const plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                        .product = PLUMB_F32,
                                        .accumulator = PLUMB_F32,
                                        .chains = 1,
                                        .probability = PLUMB_F32,
                                        .function_ulp = 0,
                                        .deterministic = 1};
static const plumb_op_entry entry = {
    .op = "sparse_mla_decode", .launch = &launch, .numerics = &numerics};
static const plumb_plugin_table table = {.abi_version = PLUMB_ABI_VERSION,
                                         .struct_size = sizeof(plumb_plugin_table),
                                         .name = "plans",
                                         .entries = &entry,
                                         .entry_stride = sizeof(plumb_op_entry),
                                         .entry_count = 1};

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  (void)services;
  return &table;
}
