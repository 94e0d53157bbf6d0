/* SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of a plug-in: anybody's kernels in the place of plumb's own (plumb run --plugin
 * lib.so). docs/plugins.md says what each side promises.
 *
 * A plug-in is a shared library that exports one symbol:
 *
 *   PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* host);
 *
 * It is called once in a process, before anything else, and returns a table that stays valid, as
 * `host` does. Whoever is given one of the two structures reads `abi_version`, their first member
 * in every version, before any other. Within a version structures grow at their ends: a plug-in and
 * a plumb that were built with different headers work together. What plumb does not know of a
 * plug-in's structure has to be 0. A plug-in asks PLUMB_HAS before it uses a member of `host` that
 * is younger than the version; in parameters such a member is 0 where plumb does not know it. */
#ifndef PLUMB_PLUGIN_H
#define PLUMB_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "plumb_ops.h"

/* Whether the structure has this member where it was made. */
#define PLUMB_HAS(structure, member) \
  ((structure)->struct_size >=       \
   (int64_t)((const char*)(&(structure)->member + 1) - (const char*)(structure)))

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PLUMB_PLUGIN_VISIBLE __attribute__((visibility("default")))
#else
#define PLUMB_PLUGIN_VISIBLE
#endif
#ifdef __cplusplus
#define PLUMB_PLUGIN_EXPORT extern "C" PLUMB_PLUGIN_VISIBLE
#else
#define PLUMB_PLUGIN_EXPORT PLUMB_PLUGIN_VISIBLE
#endif

/* One op of a plug-in. An array of entries says how far apart they are, which is their size.
 * Functions may be called from several threads. */
typedef struct plumb_op_entry {
  const char* op;
  /* Enqueues the op on the stream that its parameters name, and returns. `params` points to the
   * op's structure in plumb_ops.h, and is gone when the launcher returns: plumb overwrites it. */
  plumb_status (*launch)(const void* params);
  const plumb_numerics* numerics;
  /* From here on what is null is absent. */
  /* For kernels that choose between several paths: changes `numerics`, a copy of the entry's, into
   * what the launch with these parameters promises. */
  void (*numerics_of)(const void* params, plumb_numerics* numerics);
  /* Where right kernels of different engines differ: values of the op's choices, as
   * "floor=1e-10 ties=even" (docs/operations/arguments.md lists them). Cases run under these. Of a
   * choice that is not named the kernel does whatever its parameters say. */
  const char* contract;
  /* Host state that outlives a launch, for ops whose parameters have a `state`
   * (sparse_mla_decode). A state belongs to one sequence of launches with equal shapes on one
   * stream, and is the `state` of their parameters. `state_create` is called on the thread of the
   * first launch, in front of it, with its parameters; `state_destroy` on any thread, after the
   * last launch. Both or neither. */
  void* (*state_create)(const void* params);
  void (*state_destroy)(void* state);
  /* Enqueues what later launches with the same tile plan rely on. It is called in front of the
   * first of them, on its thread and with its parameters, and is captured with it. Called again
   * only for another plan or state. Null: `launch` does all in each call. */
  plumb_status (*plan)(const void* params);
} plumb_op_entry;

/* Ops without an entry are skipped, never replaced by somebody else's. */
typedef struct plumb_plugin_table {
  uint32_t abi_version; /* PLUMB_ABI_VERSION */
  int64_t struct_size;  /* sizeof(plumb_plugin_table) */
  const char* name;
  const char* version; /* optional: stands in reports */
  const plumb_op_entry* entries;
  int64_t entry_stride; /* sizeof(plumb_op_entry) */
  int64_t entry_count;
} plumb_plugin_table;

/* What a kernel could ask about its device. */
typedef struct plumb_device {
  int64_t struct_size;
  const char* platform; /* "sim-sm90", "cuda-sm90", ... */
  int32_t simulated; /* 1: device memory is memory of this process, and a stream is no native one */
  int64_t wave_size;
  int64_t multiprocessors;
  int64_t shared_bytes_per_block;
  plumb_format fp8; /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ: what the platform's encoders write */
} plumb_device;

/* Services. `stream` is always one that came in an op's parameters; on CUDA and HIP it is the
 * native stream. They may be called from a launcher, on its thread, and not from a function that
 * `launch` runs. A service that fails says so to its caller and fails the case, whatever the caller
 * does. */
typedef struct plumb_host {
  uint32_t abi_version; /* PLUMB_ABI_VERSION */
  int64_t struct_size;
  void* context; /* goes into every call */

  /* Enqueues function(arguments) on the stream, with the `bytes` at `arguments` as they are now:
   * on a simulated platform this is how a kernel is launched and captured, and the function reads
   * and writes device memory as a kernel does. On a real device it runs on the host and may not use
   * the device. `name` stands for the kernel in reports. */
  plumb_status (*launch)(void* context, const char* name, void (*function)(const void* arguments),
                         const void* arguments, size_t bytes, plumb_stream stream);

  /* Scratch for work on the stream, 256-byte aligned; NULL if there is none. In a capture only as
   * much as was asked for before it, in all. A piece that is given back while work that uses it is
   * still pending may be used by what is enqueued later, and by nothing else. */
  void* (*allocate)(void* context, size_t bytes, plumb_stream stream);
  plumb_status (*release)(void* context, void* memory, plumb_stream stream);

  /* NULL if the stream is none of plumb's. */
  const plumb_device* (*device)(void* context, plumb_stream stream);

  /* One line on why the launcher that is running will not return PLUMB_OK. */
  void (*explain)(void* context, const char* why);
} plumb_host;

#ifdef __cplusplus
}
#endif

#endif
