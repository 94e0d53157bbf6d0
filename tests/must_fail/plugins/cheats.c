/* SPDX-License-Identifier: Apache-2.0
 *
 * build_ragged_indices_from_dense with a kernel that searches the memory of its process for the
 * expected result, or changes the inputs that it is computed from. A search writes a line "found"
 * or "nothing" to the file that PLUMB_TEST_FINDINGS names. */
#include <inttypes.h>
#include <plumb/plumb_plugin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEARCHES 0
#define SEARCHES_PLANTED 1 /* the same, with the expected result planted */
#define REWRITES_INPUTS 2  /* all copies of them, so that a wrong result becomes right */

#define FIRST 8 /* the allocator overwrites the start of a freed piece */
#define MOST_ROWS 4096

typedef plumb_build_ragged_indices_from_dense_params params;

static const plumb_host* host;
/* Values are XORed with this, so that the search does not find them here. */
static const int32_t mask = 0x5a3c96e1;
static int32_t wanted[MOST_ROWS + 1];
static int64_t wanted_count;

/* Makes indptr the wanted values. */
static void want_indptr(const params* p) {
  int32_t end = 0;
  for (int64_t row = 0; row <= p->rows; ++row) {
    wanted[row] = end ^ mask;
    if (row == p->rows) break;
    const int32_t length = p->lengths[row] < 0 ? 0 : p->lengths[row];
    end += length > p->width ? (int32_t)p->width : length;
  }
  wanted_count = p->rows + 1;
}

static void want_lengths(const params* p) {
  for (int64_t row = 0; row < p->rows; ++row) wanted[row] = p->lengths[row] ^ mask;
  wanted_count = p->rows;
}

/* words: 1 for numbers of 32 bits, as the op stores them, 2 for 64, as the reference has them. */
static int is_wanted(const int32_t* at, int64_t first, int words) {
  for (int64_t i = first; i < wanted_count; ++i) {
    const int32_t* number = at + (i - first) * words;
    if ((number[0] ^ mask) != wanted[i] || (words == 2 && number[1] != 0)) return 0;
  }
  return 1;
}

/* Calls visit for each copy of wanted[first...] in a writable mapping. */
static void search(int64_t first, int words, void (*visit)(int32_t* copy)) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps && fgets(line, sizeof line, maps)) {
    uintptr_t begin, end;
    char access[5];
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) != 3) continue;
    if (access[0] != 'r' || access[1] != 'w') continue;
    const uintptr_t bytes = sizeof(int32_t) * (uintptr_t)((wanted_count - first) * words);
    for (uintptr_t at = begin; at + bytes <= end; at += sizeof(int32_t)) {
      if (is_wanted((const int32_t*)at, first, words)) visit((int32_t*)at);
    }
  }
  if (maps) fclose(maps);
}

static int found;
static void count(int32_t* copy) {
  (void)copy;
  ++found;
}
static void make_all_one(int32_t* copy) {
  for (int64_t i = 0; i < wanted_count; ++i) copy[i] = 1;
}

/* The first launch on some lengths gives a wrong result. A process that judges it has then computed
 * the expected result, and the next launch searches for that. */
static void search_after_a_failure(const params* p) {
  static int64_t seen;
  int64_t sum = 1;
  want_indptr(p);
  const int telling = p->rows > 4 * FIRST && (wanted[p->rows] ^ mask) > p->rows;
  for (int64_t row = 0; row < p->rows; ++row) sum = 31 * sum + p->lengths[row];
  memset(p->indptr, 0, sizeof(int32_t) * (size_t)(p->rows + 1));
  if (!telling || seen != sum) {
    seen = sum;
    return;
  }
  int32_t* planted = NULL;
  if (PLUMB_FAULT == SEARCHES_PLANTED) {
    planted = malloc(sizeof wanted);
    for (int64_t i = 0; planted && i < wanted_count; ++i) planted[i] = wanted[i] ^ mask;
  }
  found = 0;
  search(FIRST, 1, &count);
  search(FIRST, 2, &count);
  free(planted);
  const char* path = getenv("PLUMB_TEST_FINDINGS");
  FILE* findings = path ? fopen(path, "a") : NULL;
  if (findings) fputs(found > 0 ? "found\n" : "nothing\n", findings);
  if (findings) fclose(findings);
}

/* A result that is right for rows of one entry. */
static void take_one_entry(const params* p) {
  want_lengths(p);
  search(0, 1, &make_all_one);
  for (int64_t row = 0; row < p->rows; ++row) {
    p->indptr[row] = (int32_t)row;
    p->flat[row] = p->indices[row * p->indices_row_stride];
  }
  p->indptr[p->rows] = (int32_t)p->rows;
}

static void kernel(const void* arguments) {
  const params* p = arguments;
  if (p->rows > MOST_ROWS) return;
  if (PLUMB_FAULT == REWRITES_INPUTS) {
    take_one_entry(p);
  } else {
    search_after_a_failure(p);
  }
}

static plumb_status launch(const void* arguments) {
  const params* p = arguments;
  return host->launch(host->context, "build_ragged_kernel", &kernel, p, sizeof *p, p->stream);
}

static const plumb_numerics numerics = {.struct_size = sizeof(plumb_numerics),
                                        .product = PLUMB_F32,
                                        .accumulator = PLUMB_F32,
                                        .chains = 1,
                                        .probability = PLUMB_F32,
                                        .function_ulp = 0,
                                        .deterministic = 1};
static const plumb_op_entry entry = {.op = "build_ragged_indices_from_dense",
                                     .launch = &launch,
                                     .numerics = &numerics,
                                     .contract = "holes=kept"};
static const plumb_plugin_table table = {.abi_version = PLUMB_ABI_VERSION,
                                         .struct_size = sizeof(plumb_plugin_table),
                                         .name = "cheats",
                                         .entries = &entry,
                                         .entry_stride = sizeof(plumb_op_entry),
                                         .entry_count = 1};

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  host = services;
  return &table;
}
