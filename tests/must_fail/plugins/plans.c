/* SPDX-License-Identifier: Apache-2.0
 *
 * The host state of sparse_mla_decode, without a kernel. A launch succeeds if its state was planned
 * once, and if as many states exist as the call has requests. A plan succeeds if it gets the call's
 * own plan. */
#include <plumb/plumb_plugin.h>
#include <stdlib.h>

typedef struct kept {
  int plans;
} kept;
static int living;

static void* state_create(const void* params) {
  (void)params;
  ++living;
  return calloc(1, sizeof(kept));
}

static void state_destroy(void* state) {
  --living;
  free(state);
}

static plumb_status plan(const void* params) {
  const plumb_sparse_mla_decode_params* p = params;
  if (!p->plan) return PLUMB_UNSUPPORTED;
  ++((kept*)p->state)->plans;
  return (const void*)p->plan->tiles == (const void*)p->out ? PLUMB_OK : PLUMB_INVALID_ARGUMENT;
}

static plumb_status launch(const void* params) {
  const plumb_sparse_mla_decode_params* p = params;
  const int right = ((const kept*)p->state)->plans == 1 && living == p->requests;
  return right ? PLUMB_OK : PLUMB_INVALID_ARGUMENT;
}

static const plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                        .product = PLUMB_F32,
                                        .accumulator = PLUMB_F32,
                                        .chains = 1,
                                        .probability = PLUMB_F32,
                                        .function_ulp = 0,
                                        .deterministic = 1};
static const plumb_op_entry entry = {.op = "sparse_mla_decode",
                                     .launch = &launch,
                                     .numerics = &numerics,
                                     .state_create = &state_create,
                                     .state_destroy = &state_destroy,
                                     .plan = &plan};
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
