/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norm in two kernels as a plug-in in C11: right, or with an error that only calls that are
 * pending at the same time show, as PLUMB_FAULT names it. The first kernel stores a factor per row
 * in scratch, the second multiplies by it. */
#include <math.h>
#include <plumb/plumb_plugin.h>
#include <stdint.h>
#include <string.h>

#define RIGHT 0
#define FEW_ARGUMENTS 1      /* keeps those of the last eight calls */
#define SCRATCH_OF_THREAD 2  /* one block per host thread, for all its streams */
#define SCRATCH_OF_LARGEST 3 /* one block per stream, replaced by a larger one when needed */

enum { kRing = 8, kStreams = 64, kMostTokens = 4096 };

static const plumb_host* host;

struct call {
  plumb_rms_norm_params params;
  float* factors; /* one per token */
};

struct block {
  plumb_stream stream;
  float* memory;
  size_t bytes;
};

static float from_bf16(uint16_t value) {
  const uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

static uint16_t to_bf16(float value) {
  uint32_t bits;
  if (isnan(value)) return 0x7fc0;
  memcpy(&bits, &value, sizeof bits);
  bits += 0x7fff + (bits >> 16 & 1);
  return (uint16_t)(bits >> 16);
}

static const struct call* call_of(const void* arguments) {
  return PLUMB_FAULT == FEW_ARGUMENTS ? *(const struct call* const*)arguments : arguments;
}

static void factor_kernel(const void* arguments) {
  const struct call* call = call_of(arguments);
  const plumb_rms_norm_params* p = &call->params;
  for (int64_t row = 0; row < p->tokens; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < p->hidden; ++i) {
      const float x = from_bf16(p->x[row * p->x_row_stride + i]);
      sum += x * x;
    }
    call->factors[row] = 1 / sqrtf(sum / (float)p->hidden + p->eps);
  }
}

static void scale_kernel(const void* arguments) {
  const struct call* call = call_of(arguments);
  const plumb_rms_norm_params* p = &call->params;
  for (int64_t row = 0; row < p->tokens; ++row) {
    for (int64_t i = 0; i < p->hidden; ++i) {
      const float w = p->weight ? from_bf16(p->weight[i]) : 1;
      const float x = from_bf16(p->x[row * p->x_row_stride + i]);
      p->out[row * p->out_row_stride + i] = to_bf16(x * call->factors[row] * w);
    }
  }
}

static plumb_status launch_both(const struct call* call) {
  static struct call ring[kRing];
  static unsigned calls;
  const void* arguments = call;
  const struct call* kept = &ring[calls % kRing];
  size_t bytes = sizeof *call;
  if (PLUMB_FAULT == FEW_ARGUMENTS) {
    ring[calls++ % kRing] = *call;
    arguments = &kept;
    bytes = sizeof kept;
  }
  const plumb_stream stream = call->params.stream;
  const plumb_status status =
      host->launch(host->context, "factor_kernel", &factor_kernel, arguments, bytes, stream);
  if (status != PLUMB_OK) return status;
  return host->launch(host->context, "scale_kernel", &scale_kernel, arguments, bytes, stream);
}

/* The thread's block, or that of the stream. Blocks are of one device, so that a process can run
 * one case under one point. */
static struct block* block_of(plumb_stream stream) {
  static _Thread_local struct block of_thread, of_streams[kStreams];
  if (PLUMB_FAULT == SCRATCH_OF_THREAD) return &of_thread;
  struct block* block = of_streams;
  while (block->stream && block->stream != stream) ++block;
  block->stream = stream;
  return block;
}

static plumb_status rms_norm(const void* params) {
  struct call call = {*(const plumb_rms_norm_params*)params, NULL};
  const plumb_stream stream = call.params.stream;
  const int64_t tokens = PLUMB_FAULT == SCRATCH_OF_THREAD ? kMostTokens : call.params.tokens + 1;
  const size_t bytes = (size_t)tokens * sizeof *call.factors;
  const int keeps = PLUMB_FAULT == SCRATCH_OF_THREAD || PLUMB_FAULT == SCRATCH_OF_LARGEST;
  struct block now = {0}, *block = keeps ? block_of(stream) : &now;
  if (block->bytes < bytes) {
    if (block->memory) host->release(host->context, block->memory, stream);
    block->memory = host->allocate(host->context, bytes, stream);
    block->bytes = bytes;
    if (!block->memory) return PLUMB_LAUNCH_FAILED;
  }
  call.factors = block->memory;
  const plumb_status status = launch_both(&call);
  if (!keeps) host->release(host->context, call.factors, stream);
  return status;
}

static const plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                        .product = PLUMB_F32,
                                        .accumulator = PLUMB_F32,
                                        .chains = 1,
                                        .probability = PLUMB_F32,
                                        .function_ulp = 2,
                                        .deterministic = 1};
static const plumb_op_entry entries[] = {
    {.op = "rms_norm", .launch = &rms_norm, .numerics = &numerics, .contract = "rounding=once"}};
static const plumb_plugin_table table = {.abi_version = PLUMB_ABI_VERSION,
                                         .struct_size = sizeof(plumb_plugin_table),
                                         .name = "queues",
                                         .entries = entries,
                                         .entry_stride = sizeof(plumb_op_entry),
                                         .entry_count = 1};

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  host = services;
  return &table;
}
