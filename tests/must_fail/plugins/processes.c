/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norm and q_kv_rms_norm as a plug-in in C11 that harms its own process in the way that
 * PLUMB_FAULT names. The launcher of rms_norm does it; q_kv_rms_norm computes nothing.
 */
#include <math.h>
#include <plumb/plumb_plugin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CRASHES_ONCE 1 /* unless the file that PLUMB_TEST_ONCE names exists */
#define FORKS 2        /* and returns in both processes */
#define SHUTS_DOWN 3   /* its connections, and hangs */
#define CLOSES 4       /* all descriptors, and hangs */
#define NONSENSE 5     /* an answer of zeros on every socket */
#define COPIES 6       /* itself, and both hang */

static const plumb_host* host;

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

static void rms_norm_kernel(const void* arguments) {
  const plumb_rms_norm_params* p = arguments;
  for (int64_t row = 0; row < p->tokens; ++row) {
    const uint16_t* x = p->x + row * p->x_row_stride;
    float sum = 0;
    for (int64_t i = 0; i < p->hidden; ++i) sum += from_bf16(x[i]) * from_bf16(x[i]);
    const float scale = 1 / sqrtf(sum / (float)p->hidden + p->eps);
    for (int64_t i = 0; i < p->hidden; ++i) {
      const float w = p->weight ? from_bf16(p->weight[i]) : 1;
      p->out[row * p->out_row_stride + i] = to_bf16(from_bf16(x[i]) * scale * w);
    }
  }
}

static void crash_once(void) {
  const char* name = getenv("PLUMB_TEST_ONCE");
  FILE* file = name ? fopen(name, "r") : NULL;
  if (file) {
    fclose(file);
    return;
  }
  file = name ? fopen(name, "w") : NULL;
  if (file) fclose(file);
  raise(SIGSEGV);
}

static int is_copy, has_forked, has_slept;

/* The copy answers the first case before its original, and the second case, of 257 columns, while
 * its original is in the third one: each answer comes one case late. */
static void fork_once(int64_t hidden) {
  if (has_forked) {
    if (is_copy && hidden == 257 && !has_slept++) usleep(600000);
    return;
  }
  has_forked = 1;
  is_copy = fork() == 0;
  if (!is_copy) usleep(300000);
}

static void hang(void) {
  for (;;) pause();
}

static void answer_nonsense(void) {
  static const char zeros[64];
  for (int descriptor = 3; descriptor < 32; ++descriptor) {
    (void)send(descriptor, zeros, sizeof zeros, MSG_NOSIGNAL);
  }
  hang();
}

static plumb_status rms_norm(const void* params) {
  const plumb_rms_norm_params* p = params;
  switch (PLUMB_FAULT) {
    case CRASHES_ONCE: crash_once(); break;
    case FORKS: fork_once(p->hidden); break;
    case SHUTS_DOWN:
      /* Not 3, through which new connections come; these are the connections. */
      for (int descriptor = 4; descriptor < 32; ++descriptor) shutdown(descriptor, SHUT_RDWR);
      hang();
      break;
    case CLOSES:
      for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
      hang();
      break;
    case NONSENSE: answer_nonsense(); break;
    case COPIES:
      if (fork() >= 0) hang();
      break;
    default: break;
  }
  return host->launch(host->context, "rms_norm_kernel", &rms_norm_kernel, p, sizeof *p, p->stream);
}

static void nothing(const void* arguments) { (void)arguments; }

static plumb_status q_kv_rms_norm(const void* params) {
  const plumb_q_kv_rms_norm_params* p = params;
  if (has_forked) usleep(1000000);
  return host->launch(host->context, "q_kv_rms_norm_kernel", &nothing, p, sizeof *p, p->stream);
}

static const plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                        .product = PLUMB_F32,
                                        .accumulator = PLUMB_F32,
                                        .chains = 1,
                                        .probability = PLUMB_F32,
                                        .function_ulp = 2,
                                        .deterministic = 1};
static const plumb_op_entry entries[] = {
    {.op = "rms_norm", .launch = &rms_norm, .numerics = &numerics},
    {.op = "q_kv_rms_norm", .launch = &q_kv_rms_norm, .numerics = &numerics}};
static const plumb_plugin_table table = {.abi_version = PLUMB_ABI_VERSION,
                                         .struct_size = sizeof(plumb_plugin_table),
                                         .name = "processes",
                                         .entries = entries,
                                         .entry_stride = sizeof(plumb_op_entry),
                                         .entry_count = 2};

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  host = services;
  return &table;
}
