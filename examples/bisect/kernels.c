/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norm as a plug-in, in C11, with a rounding to bf16 that depends on its operations being done
 * as they are written: what plumb bisect is tried on. It is right, unless a compiler is allowed to
 * do algebra with it (-ffast-math), or KERNELS_FAST_PATH=1 in the environment takes a path that
 * leaves out the weights. */
#include <math.h>
#include <plumb/plumb_plugin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const plumb_host* host;
static int fast_path;

static float from_bf16(uint16_t value) {
  const uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

/* Adding and taking away a number 2^16 times as large leaves 8 of 24 bits, to nearest. Algebra
 * makes it x, whose lower bits are then cut off. */
static uint16_t to_bf16(float x) {
  uint32_t bits;
  float large;
  memcpy(&bits, &x, sizeof bits);
  bits = ((bits & 0x7f800000u) + (16u << 23)) | 0x00400000u;
  memcpy(&large, &bits, sizeof large);
  const float rounded = (x + large) - large;
  memcpy(&bits, &rounded, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static void norm_row(const uint16_t* x, const uint16_t* weight, uint16_t* out, int64_t hidden,
                     float eps) {
  float sum = 0;
  for (int64_t i = 0; i < hidden; ++i) sum += from_bf16(x[i]) * from_bf16(x[i]);
  const float scale = 1 / sqrtf(sum / (float)hidden + eps);
  for (int64_t i = 0; i < hidden; ++i) {
    const float w = weight && !fast_path ? from_bf16(weight[i]) : 1;
    out[i] = to_bf16(from_bf16(x[i]) * scale * w);
  }
}

static void rms_norm_kernel(const void* arguments) {
  const plumb_rms_norm_params* p = arguments;
  for (int64_t row = 0; row < p->tokens; ++row) {
    norm_row(p->x + row * p->x_row_stride, p->weight, p->out + row * p->out_row_stride, p->hidden,
             p->eps);
  }
}

static plumb_status rms_norm(const void* params) {
  const plumb_rms_norm_params* p = params;
  if (p->rounding != PLUMB_ROUND_ONCE) {
    host->explain(host->context, "one rounding only");
    return PLUMB_UNSUPPORTED;
  }
  return host->launch(host->context, "rms_norm_kernel", &rms_norm_kernel, p, sizeof *p, p->stream);
}

/* One sequential sum in fp32; a square root and a division. */
static const plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                        .product = PLUMB_F32,
                                        .accumulator = PLUMB_F32,
                                        .chains = 1,
                                        .probability = PLUMB_F32,
                                        .function_ulp = 2,
                                        .deterministic = 1};
static const plumb_op_entry entry = {.op = "rms_norm", .launch = &rms_norm, .numerics = &numerics};
static const plumb_plugin_table table = {.abi_version = PLUMB_ABI_VERSION,
                                         .struct_size = sizeof(plumb_plugin_table),
                                         .name = "kernels",
                                         .version = "1.0",
                                         .entries = &entry,
                                         .entry_stride = sizeof(plumb_op_entry),
                                         .entry_count = 1};

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  const char* variable = getenv("KERNELS_FAST_PATH");
  fast_path = variable != NULL && strcmp(variable, "1") == 0;
  host = services;
  return &table;
}
