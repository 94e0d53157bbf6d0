/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norm and q_kv_rms_norm as a plug-in in C11: right, or with the error that PLUMB_FAULT
 * names. */
#define _GNU_SOURCE /* feenableexcept, fork */
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <plumb/plumb_plugin.h>

#define RIGHT 0
#define CRASH_IN_LAUNCHER 1
#define CRASH_IN_KERNEL 2
#define HANG_IN_KERNEL 3
#define WRITES_BEHIND 4     /* behind its output */
#define WRITES_FAR_BEHIND 5 /* into the page guards */
#define LATE_PARAMETERS 6   /* reads them after the launcher returned */
#define IGNORES_STREAM 7
#define ONCE_ONLY 8 /* does nothing after the warm-up */
#define NO_STATUS 9
#define REFUSES 10
#define FAILS 11
#define KEEPS_SCRATCH 12        /* uses scratch after its release */
#define ALLOCATES_IN_CAPTURE 13 /* and not before the capture */
#define NO_FUNCTION 14
#define FOREIGN_STREAM 15
#define LAUNCHES_IN_KERNEL 16
#define USES_SCRATCH 17 /* correctly */
#define IGNORES_WEIGHT 18
#define STALE_NUMERICS 19 /* declares less error than it has */
#define PLANS_ONCE 20     /* a plan made at warm-up is not made in the captured graph */
#define NOW_AND_THEN 21   /* ignores the weight, in one process of three */
#define ROUNDS_UP 22      /* leaves this rounding mode after each launch */
#define FLUSHES 23        /* leaves flush to zero on after each kernel */
#define TRAPS 24          /* turns on traps of inexact results */
#define FORKS 25          /* once, goes on in both; right only for rows of one element */
#define EXITS 26
#define ROUNDS_UP_IN_SSE 27   /* as ROUNDS_UP, in the SSE unit alone */
#define ALLOCATES_TOO_MUCH 28 /* and ignores the error */
#define TOO_MANY_ARGUMENTS 29 /* of a launch, and ignores the error */
#define ROUNDS_ONCE 30        /* always, and declares it */
#define WRONG_CONTRACT 31     /* declares one rounding and does another */
#define STEERS 32             /* the terminal, by escape sequences in its texts */
#define HOLDS_SCRATCH 33      /* one block serves all calls of the process */
#define KEEPS_ARGUMENTS 34    /* launches with the pointers of the first call */
#define OTHER_BITS 35         /* right: the error is one that its numerics permit */
#define LAST_ROW 36           /* is not written */
#define IGNORES_EPS 37

static const plumb_host* host;
static volatile int* volatile near_null = (volatile int*)16;

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
  if (PLUMB_FAULT != STALE_NUMERICS) bits += 0x7fff + (bits >> 16 & 1);
  return (uint16_t)(bits >> 16);
}

static void leave_float_environment(int in_launcher) {
  if (PLUMB_FAULT == ROUNDS_UP && in_launcher) fesetround(FE_UPWARD);
  if (PLUMB_FAULT == TRAPS && !in_launcher) feenableexcept(FE_INEXACT);
#if defined(__SSE__)
  /* Unlike fesetround, this does not change the x87 unit. */
  if (PLUMB_FAULT == ROUNDS_UP_IN_SSE && in_launcher) _mm_setcsr(_mm_getcsr() | 0x4000);
  if (PLUMB_FAULT == FLUSHES && !in_launcher) _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

static void fork_once(void) {
  static int forked;
  if (PLUMB_FAULT != FORKS || forked) return;
  forked = 1;
  if (fork() < 0) abort();
}

static int ignores_weight(void) {
  static int unlucky = -1;
  struct timespec now;
  if (unlucky < 0) {
    timespec_get(&now, TIME_UTC);
    unlucky = now.tv_nsec / 1000 % 3 == 0;
  }
  return PLUMB_FAULT == IGNORES_WEIGHT || (PLUMB_FAULT == NOW_AND_THEN && unlucky);
}

static void norm_row(const uint16_t* x, const uint16_t* weight, uint16_t* out, int64_t hidden,
                     float eps) {
  float sum = 0;
  for (int64_t i = 0; i < hidden; ++i) sum += from_bf16(x[i]) * from_bf16(x[i]);
  if (PLUMB_FAULT == OTHER_BITS) sum *= 1 + 0x1p-19f;
  const float scale = 1 / sqrtf(sum / (float)hidden + (PLUMB_FAULT == IGNORES_EPS ? 0 : eps));
  for (int64_t i = 0; i < hidden; ++i) {
    const int ignores = ignores_weight() || (PLUMB_FAULT == FORKS && hidden > 1);
    const float w = weight && !ignores ? from_bf16(weight[i]) : 1;
    out[i] = to_bf16(from_bf16(x[i]) * scale * w);
  }
}

static void nothing(const void* arguments) { (void)arguments; }

static void fault_in_kernel(const plumb_rms_norm_params* p, float* scratch) {
  switch (PLUMB_FAULT) {
    case CRASH_IN_KERNEL: *near_null = 1; break;
    case HANG_IN_KERNEL:
      for (;;) pause();
    case WRITES_BEHIND: p->out[p->tokens * p->out_row_stride] = 1; break;
    case WRITES_FAR_BEHIND: p->out[p->tokens * p->out_row_stride + (64 << 10)] = 1; break;
    case KEEPS_SCRATCH:
    case HOLDS_SCRATCH:
    case USES_SCRATCH: *scratch = 1; break;
    case LAUNCHES_IN_KERNEL:
      host->launch(host->context, "inner", &nothing, NULL, 0, p->stream);
      break;
    default: break;
  }
}

struct call {
  plumb_rms_norm_params params;
  float* scratch;
};

static void rms_norm_kernel(const void* arguments) {
  const struct call* call = arguments;
  const plumb_rms_norm_params* p = &call->params;
  fault_in_kernel(p, call->scratch);
  for (int64_t row = 0; row < p->tokens - (PLUMB_FAULT == LAST_ROW); ++row) {
    norm_row(p->x + row * p->x_row_stride, p->weight, p->out + row * p->out_row_stride, p->hidden,
             p->eps);
  }
  leave_float_environment(0);
}

/* `arguments`: a pointer to where the parameters were. */
static void late_kernel(const void* arguments) {
  struct call call = {0};
  memcpy(&call.params, *(const void* const*)arguments, sizeof call.params);
  rms_norm_kernel(&call);
}

static plumb_status enqueue(const struct call* call) {
  const plumb_stream stream = call->params.stream;
  switch (PLUMB_FAULT) {
    case IGNORES_STREAM: rms_norm_kernel(call); return PLUMB_OK;
    case NO_FUNCTION:
      return host->launch(host->context, "kernel", NULL, call, sizeof *call, stream);
    case FOREIGN_STREAM:
      return host->launch(host->context, "kernel", &rms_norm_kernel, call, sizeof *call,
                          (void*)call);
    default: break;
  }
  return host->launch(host->context, "rms_norm_kernel", &rms_norm_kernel, call, sizeof *call,
                      stream);
}

/* Launches with scratch, which it releases behind the launch or has released before. */
static plumb_status enqueue_with_scratch(struct call* call) {
  const plumb_stream stream = call->params.stream;
  static float* kept;
  static int calls;
  const int first_in_capture = PLUMB_FAULT == ALLOCATES_IN_CAPTURE && calls++ == 0;
  if (PLUMB_FAULT == KEEPS_SCRATCH && kept) {
    call->scratch = kept;
    return enqueue(call);
  }
  if (first_in_capture) return enqueue(call);
  call->scratch = host->allocate(host->context, 1000, stream);
  kept = call->scratch;
  if (!call->scratch) return PLUMB_OK; /* plumb has to report the refusal anyway */
  const plumb_status status = enqueue(call);
  host->release(host->context, call->scratch, stream);
  return status;
}

/* Launches with scratch that it never releases. It is larger than all memory of the case. */
static plumb_status enqueue_with_held_scratch(struct call* call) {
  static float* held;
  const size_t bytes = (size_t)8 << 20;
  if (!held) held = host->allocate(host->context, bytes, call->params.stream);
  call->scratch = held + bytes / sizeof *held - 1;
  return enqueue(call);
}

static plumb_status rms_norm(const void* params) {
  static int calls;
  static struct call first;
  static const void* planned;
  struct call call = {*(const plumb_rms_norm_params*)params, NULL};
  if (PLUMB_FAULT < ROUNDS_ONCE && call.params.rounding != PLUMB_ROUND_ONCE) {
    host->explain(host->context, "one rounding only");
    return PLUMB_UNSUPPORTED;
  }
  switch (PLUMB_FAULT) {
    case CRASH_IN_LAUNCHER: *near_null = 1; break;
    case EXITS: exit(7);
    case LATE_PARAMETERS:
      return host->launch(host->context, "rms_norm_kernel", &late_kernel, &params, sizeof params,
                          call.params.stream);
    case ONCE_ONLY:
      if (calls++ > 0) return PLUMB_OK;
      break;
    case PLANS_ONCE:
      if (planned == call.params.out) break;
      planned = call.params.out;
      host->launch(host->context, "plan_kernel", &nothing, NULL, 0, call.params.stream);
      break;
    case NO_STATUS: return (plumb_status)17;
    case REFUSES: host->explain(host->context, "too wide"); return PLUMB_INVALID_ARGUMENT;
    case STEERS:
      host->explain(host->context, "\033[2J gone\302\2332J\r\n");
      return PLUMB_LAUNCH_FAILED;
    case FAILS: host->explain(host->context, "out of luck"); return PLUMB_LAUNCH_FAILED;
    case ALLOCATES_TOO_MUCH: host->allocate(host->context, SIZE_MAX, call.params.stream); break;
    case TOO_MANY_ARGUMENTS:
      host->launch(host->context, "rms_norm_kernel", &rms_norm_kernel, &call, SIZE_MAX,
                   call.params.stream);
      break;
    case KEEPS_SCRATCH:
    case USES_SCRATCH:
    case ALLOCATES_IN_CAPTURE: return enqueue_with_scratch(&call);
    case HOLDS_SCRATCH: return enqueue_with_held_scratch(&call);
    case KEEPS_ARGUMENTS:
      if (calls++ == 0) first = call;
      first.params.stream = call.params.stream;
      return enqueue(&first);
    default: break;
  }
  fork_once();
  const plumb_status status = enqueue(&call);
  leave_float_environment(1);
  return status;
}

static void q_kv_rms_norm_kernel(const void* arguments) {
  const plumb_q_kv_rms_norm_params* p = arguments;
  for (int64_t row = 0; row < p->tokens; ++row) {
    norm_row(p->q + row * p->q_row_stride, p->q_weight, p->out_q + row * p->out_q_row_stride,
             p->q_hidden, p->eps);
    norm_row(p->kv + row * p->kv_row_stride, p->kv_weight, p->out_kv + row * p->out_kv_row_stride,
             p->kv_hidden, p->eps);
  }
}

static plumb_status q_kv_rms_norm(const void* params) {
  const plumb_q_kv_rms_norm_params* p = params;
  return host->launch(host->context, "q_kv_rms_norm_kernel", &q_kv_rms_norm_kernel, p, sizeof *p,
                      p->stream);
}

static const plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                        .product = PLUMB_F32,
                                        .accumulator = PLUMB_F32,
                                        .chains = 1,
                                        .probability = PLUMB_F32,
                                        .function_ulp = 2,
                                        .deterministic = 1};
static const plumb_op_entry entries[] = {
    {.op = "rms_norm",
     .launch = &rms_norm,
     .numerics = &numerics,
     .contract = PLUMB_FAULT == ROUNDS_ONCE      ? "rounding=once"
                 : PLUMB_FAULT == WRONG_CONTRACT ? "rounding=twice"
                                                 : NULL},
    {.op = "q_kv_rms_norm",
     .launch = &q_kv_rms_norm,
     .numerics = &numerics,
     .contract = "rounding=once"}};
static const plumb_plugin_table table = {
    .abi_version = PLUMB_ABI_VERSION,
    .struct_size = sizeof(plumb_plugin_table),
    .name = PLUMB_FAULT == STEERS ? "\033[2J launches" : "launches",
    .entries = entries,
    .entry_stride = sizeof(plumb_op_entry),
    .entry_count = 2};

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  host = services;
  return &table;
}
