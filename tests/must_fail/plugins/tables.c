/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that are not usable as plug-ins. PLUMB_FAULT names the one error of each. */
#include <plumb/plumb_plugin.h>
#include <stdlib.h>
#include <unistd.h>

#define RIGHT_TABLE 0
#define WRONG_VERSION 1
#define NO_TABLE 2
#define NO_ENTRY_POINT 3
#define TWO_ENTRIES 4
#define UNKNOWN_OP 5
#define NO_LAUNCHER 6
#define NO_CHAINS 7
#define NO_NAME 8
#define NO_ENTRIES 9
#define CRASH 10
#define HANG 11
#define UNRESOLVED 12
#define EXIT 13
#define NO_NUMERICS 14
#define SHORT_TABLE 15
#define SHORT_ENTRIES 16
#define LATER_MEMBER 17 /* set, with the grown interface only */
#define UNKNOWN_CHOICE 18
#define UNKNOWN_VALUE 19 /* of a choice */
#define TWO_VALUES 20
#define STRAY_PLAN 21 /* of an op that has none */
#define HALF_A_STATE 22
#define UNKNOWN_UNIT 23

static plumb_status launch(const void* params) {
  (void)params;
  return PLUMB_UNSUPPORTED;
}

static plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                  .product = PLUMB_F32,
                                  .accumulator = PLUMB_F32,
                                  .chains = 1,
                                  .probability = PLUMB_F32,
                                  .function_ulp = 2,
                                  .deterministic = 1};
static plumb_op_entry entries[] = {{.op = "rms_norm", .launch = &launch, .numerics = &numerics},
                                   {.op = "hc_head", .launch = &launch, .numerics = &numerics}};

static plumb_plugin_table table = {.abi_version = PLUMB_ABI_VERSION,
                                   .struct_size = sizeof(plumb_plugin_table),
                                   .name = "tables",
                                   .version = "0",
                                   .entries = entries,
                                   .entry_stride = sizeof(plumb_op_entry),
                                   .entry_count = 2};

#if PLUMB_FAULT == UNRESOLVED
int plumb_nobody_has_this(void);
int plumb_needs_it(void) { return plumb_nobody_has_this(); }
#endif

#if PLUMB_FAULT == NO_ENTRY_POINT
#define plumb_plugin plumb_plug_in
#endif

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* host) {
  if (host->abi_version != PLUMB_ABI_VERSION) return NULL;
  switch (PLUMB_FAULT) {
    case WRONG_VERSION:
      table.abi_version = 99;
      table.name = (const char*)1; /* a crash if plumb reads on */
      break;
    case NO_TABLE: return NULL;
    case TWO_ENTRIES: entries[1].op = "rms_norm"; break;
    case UNKNOWN_OP: entries[1].op = "rms_nrom"; break;
    case NO_LAUNCHER: entries[1].launch = NULL; break;
    case NO_CHAINS: numerics.chains = 0; break;
    case UNKNOWN_UNIT: numerics.sum_unit = (plumb_sum_unit)9; break;
    case NO_NAME: table.name = NULL; break;
    case NO_ENTRIES: table.entries = NULL; break;
    case CRASH: abort();
    case HANG:
      for (;;) pause();
    case EXIT: _exit(7);
    case NO_NUMERICS: entries[1].numerics = NULL; break;
    case SHORT_TABLE: table.struct_size = 8; break;
    case SHORT_ENTRIES: table.entry_stride = 8; break;
    case UNKNOWN_CHOICE: entries[0].contract = "roundin=once"; break;
    case UNKNOWN_VALUE: entries[0].contract = "rounding=thrice"; break;
    case TWO_VALUES: entries[0].contract = "rounding=once rounding=twice"; break;
    case STRAY_PLAN: entries[0].plan = &launch; break;
    case HALF_A_STATE: entries[0].state_destroy = &free; break;
#if PLUMB_FAULT == LATER_MEMBER
    case LATER_MEMBER: entries[1].of_a_later_version = 1; break;
#endif
    default: break;
  }
  return &table;
}
