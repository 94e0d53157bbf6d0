/* SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of plumb's operations: one plain parameter struct per op (ops/<family>.h), the same
 * for plumb's own kernels and for those of plug-ins. A launcher enqueues its work on `stream`
 * and returns at once. It does not synchronise, and allocates only with plumb_host's `allocate`,
 * so every call can be captured into a graph.
 *
 * Growth. A structure begins with its size in bytes as known to its maker, and grows only at its
 * end. If a new member is 0, the structure means the same as without it. The structures without
 * a size (plumb_paged_cache, plumb_mla_cache, plumb_mla_candidates, plumb_state_cache) are
 * members of others and never grow.
 *
 * Conventions. All pointers are device pointers. Sizes, strides and counts of elements are
 * int64_t. A tensor of several dimensions that an op writes has a stride for each dimension but
 * the last. Exceptions, which are contiguous: the 4 x 4 matrix of a token, the heads of a token
 * in inverse_rope, scales by row of per_token_group_quant_fp8, those of
 * normalize_e4m3fn_to_e4m3fnuz, the structs of get_decoding_sched_meta, and partial sums between
 * two passes of one kernel. Strides count elements of the tensor's own dtype unless a name says
 * bytes; the last dimension is contiguous. bf16 is passed as uint16_t, fp8 as uint8_t. Optional
 * pointers may be NULL; their comments say so. The numbers in brackets name the section of the
 * operations' specification that a struct follows (docs/operations.md). */
#ifndef PLUMB_OPS_H
#define PLUMB_OPS_H

#include "ops/cache.h"
#include "ops/compressor.h"
#include "ops/hyper_connection.h"
#include "ops/indexer.h"
#include "ops/metadata.h"
#include "ops/norm.h"
#include "ops/quantization.h"
#include "ops/router.h"
#include "ops/sparse_mla.h"
#include "ops/top_k.h"

#define PLUMB_ABI_VERSION 2

#endif
