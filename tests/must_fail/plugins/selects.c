/* SPDX-License-Identifier: Apache-2.0
 *
 * top_k_per_row_decode whose results change from launch to launch. PLUMB_FAULT says what changes:
 * the order of the indices, or which of equal keys are taken. The environment says what the plug-in
 * declares: PLUMB_TEST_INDEX_ORDER and PLUMB_TEST_EQUAL_KEYS are numbers of enumerators. With
 * PLUMB_TEST_NUMERICS_OF, numerics_of declares any order for calls with more columns than k. */
#include <plumb/plumb_plugin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RIGHT 0
#define CHANGES_ORDER 1
#define CHANGES_EQUAL_KEYS 2

static const plumb_host* host;

static uint32_t key_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Indices of the k largest keys, ascending. Of equal keys at the threshold the first ones, or with
 * take_last the last ones. */
static void select_row(const float* x, int64_t stride, int64_t length, int64_t k, int32_t* out,
                       int take_last) {
  uint32_t threshold = 0;
  int64_t above = 0, skip = 0;
  int32_t n = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t tried = threshold | 1u << bit;
    int64_t count = 0;
    for (int64_t i = 0; i < length; ++i) count += key_of(x[i * stride]) >= tried;
    if (count >= k) threshold = tried;
  }
  for (int64_t i = 0; i < length; ++i) {
    above += key_of(x[i * stride]) > threshold;
    skip += key_of(x[i * stride]) == threshold;
  }
  skip = take_last ? skip - (k - above) : 0;
  for (int64_t i = 0; i < length && n < k; ++i) {
    const uint32_t key = key_of(x[i * stride]);
    if (key < threshold) continue;
    if (key == threshold && (skip-- > 0 || above == k)) continue;
    above += key == threshold;
    out[n++] = (int32_t)i;
  }
}

static void reverse(int32_t* row, int64_t k) {
  for (int64_t i = 0; i < k / 2; ++i) {
    const int32_t left = row[i];
    row[i] = row[k - 1 - i];
    row[k - 1 - i] = left;
  }
}

static void kernel(const void* arguments) {
  static int launches;
  const plumb_top_k_per_row_decode_params* p = arguments;
  const int odd = launches++ % 2;
  for (int64_t row = 0; row < p->rows; ++row) {
    const int32_t* lengths = p->seq_lens + row / p->next_n * p->seq_lens_row_stride;
    const int64_t query = row % p->next_n;
    const int64_t end = p->seq_lens_dims == 2 ? lengths[query] : lengths[0] - p->next_n + query + 1;
    int32_t* out = p->indices + row * p->indices_row_stride;
    for (int64_t i = 0; i < p->k; ++i) out[i] = i < end ? (int32_t)i : -1;
    if (end <= p->k) continue;
    const float* logits = (const float*)p->logits + row * p->logits_row_stride;
    select_row(logits, p->logits_column_stride, end, p->k, out,
               PLUMB_FAULT == CHANGES_EQUAL_KEYS && odd);
    if (PLUMB_FAULT == CHANGES_ORDER && odd) reverse(out, p->k);
  }
}

static plumb_status launch(const void* params) {
  const plumb_top_k_per_row_decode_params* p = params;
  if (p->logits_format != PLUMB_LOGITS_F32) return PLUMB_UNSUPPORTED;
  return host->launch(host->context, "top_k_kernel", &kernel, p, sizeof *p, p->stream);
}

/* Declares any order if rows are longer than k. */
static void numerics_of(const void* params, plumb_numerics* own) {
  const plumb_top_k_per_row_decode_params* p = params;
  if (p->columns > p->k) own->index_order = PLUMB_INDICES_ANY_ORDER;
}

static plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                  .product = PLUMB_F32,
                                  .accumulator = PLUMB_F32,
                                  .chains = 1,
                                  .probability = PLUMB_F32,
                                  .function_ulp = 0,
                                  .deterministic = 1};
static plumb_op_entry entry = {
    .op = "top_k_per_row_decode", .launch = &launch, .numerics = &numerics};
static const plumb_plugin_table table = {.abi_version = PLUMB_ABI_VERSION,
                                         .struct_size = sizeof(plumb_plugin_table),
                                         .name = "selects",
                                         .version = "",
                                         .entries = &entry,
                                         .entry_stride = sizeof(plumb_op_entry),
                                         .entry_count = 1};

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  const char* order = getenv("PLUMB_TEST_INDEX_ORDER");
  const char* equal = getenv("PLUMB_TEST_EQUAL_KEYS");
  if (order) numerics.index_order = (plumb_index_order)atoi(order);
  if (equal) numerics.equal_keys = (plumb_equal_keys)atoi(equal);
  if (getenv("PLUMB_TEST_NUMERICS_OF")) entry.numerics_of = &numerics_of;
  host = services;
  return &table;
}
