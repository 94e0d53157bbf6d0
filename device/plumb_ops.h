/* SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of plumb's operations: one plain parameter struct per op (ops/<family>.h), the same for
 * plumb's own kernels and for anybody else's. A launcher enqueues its work on `stream` and returns
 * at once; it neither allocates nor synchronises, so every call can be captured into a graph.
 *
 * Conventions. All device pointers. Strides count elements of the tensor's own dtype unless a name
 * says bytes; the last dimension is contiguous. bf16 travels as uint16_t, fp8 as uint8_t. An
 * optional pointer may be NULL and says so. The numbers in brackets name the section of the
 * operations' specification that a struct follows (docs/operations.md). */
#ifndef PLUMB_OPS_H
#define PLUMB_OPS_H

#include "ops/cache.h"
#include "ops/hyper_connection.h"
#include "ops/indexer.h"
#include "ops/metadata.h"
#include "ops/norm.h"
#include "ops/quantization.h"
#include "ops/router.h"
#include "ops/sparse_mla.h"
#include "ops/top_k.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMB_ABI_VERSION 1

/* What an implementation offers: entries by op name. Ops without an entry are skipped, never
 * replaced by somebody else's. `params` points to the op's struct above. */
typedef struct plumb_op_entry {
  const char* op;
  plumb_status (*launch)(const void* params);
  plumb_numerics numerics;
} plumb_op_entry;

typedef struct plumb_implementation {
  uint32_t abi_version; /* PLUMB_ABI_VERSION */
  const char* name;
  const plumb_op_entry* entries;
  int32_t entry_count;
} plumb_implementation;

#ifdef __cplusplus
}
#endif

#endif
