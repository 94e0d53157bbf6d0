/* SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of a plug-in, whose kernels run in place of plumb's own (plumb run --plugin lib.so).
 * docs/plugins.md says what each side promises.
 *
 * A plug-in is a shared library that exports one symbol:
 *
 *   PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* host);
 *
 * plumb calls this function once per process, before any other. It returns a table that stays
 * valid, as `host` does. `abi_version` is the first member of both structures in every version,
 * and must be read before any other member. Within a version structures grow only at their ends,
 * so a plug-in and a plumb that were built with different headers work together. Members of a
 * plug-in's structure that plumb does not know must be 0. A plug-in must check PLUMB_HAS before
 * it uses a member of `host` that was added after the version began. In parameters, such a
 * member is 0 if plumb does not know it. */
#ifndef PLUMB_PLUGIN_H
#define PLUMB_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "plumb_ops.h"

/* True if the maker of the structure knew this member. */
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

/* One op of a plug-in. The table's entry_stride is the distance between entries, which is their
 * size. Functions may be called from several threads. */
typedef struct plumb_op_entry {
  const char* op;
  /* Enqueues the op on the stream in its parameters, and returns. `params` points to the op's
   * structure in plumb_ops.h. It is not valid after the launcher returns: plumb overwrites it. */
  plumb_status (*launch)(const void* params);
  const plumb_numerics* numerics;
  /* The members from here on are optional: null means absent. */
  /* For kernels that choose between several paths: changes `numerics`, a copy of the entry's, to
   * what the launch with these parameters promises. */
  void (*numerics_of)(const void* params, plumb_numerics* numerics);
  /* For ops in which right kernels of different engines differ: values of the op's choices, as
   * "floor=1e-10 ties=even" (docs/operations/arguments.md lists them). Cases run under these
   * values. For a choice that is not named, the kernel must do what its parameters say. */
  const char* contract;
  /* Host state that outlives a launch, for ops whose parameters have a `state`
   * (sparse_mla_decode). A state belongs to one sequence of launches with equal shapes on one
   * stream, and plumb passes it as the `state` of their parameters. `state_create` is called on
   * the thread of the first launch, before that launch and with its parameters. `state_destroy`
   * is called on any thread, after the last launch. An entry has both or neither. */
  void* (*state_create)(const void* params);
  void (*state_destroy)(void* state);
  /* Enqueues work that later launches with the same tile plan need. It is called before the
   * first of them, on its thread and with its parameters, and is captured with it. It is called
   * again only for another plan or state. Null: `launch` does all the work in each call. */
  plumb_status (*plan)(const void* params);
} plumb_op_entry;

/* The table that a plug-in returns. Ops without an entry are skipped; plumb's own kernels never
 * replace them. */
typedef struct plumb_plugin_table {
  uint32_t abi_version; /* PLUMB_ABI_VERSION */
  int64_t struct_size;  /* sizeof(plumb_plugin_table) */
  const char* name;
  const char* version; /* optional; printed in reports */
  const plumb_op_entry* entries;
  int64_t entry_stride; /* sizeof(plumb_op_entry) */
  int64_t entry_count;
} plumb_plugin_table;

/* Properties of a device. */
typedef struct plumb_device {
  int64_t struct_size;
  const char* platform; /* "sim-sm90", "cuda-sm90", ... */
  int32_t simulated;    /* 1: device memory is memory of this process, and streams are not native */
  int64_t wave_size;
  int64_t multiprocessors;
  int64_t shared_bytes_per_block;
  plumb_format fp8; /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ: format that the platform's encoders write */
} plumb_device;

/* Services of plumb. `stream` must come from an op's parameters; on CUDA and HIP it is the
 * native stream. Services may be called from a launcher, on its thread, and not from a function
 * that the service `launch` runs. A service that fails returns an error to its caller and also
 * fails the case, even if the caller ignores the error. */
typedef struct plumb_host {
  uint32_t abi_version; /* PLUMB_ABI_VERSION */
  int64_t struct_size;
  void* context; /* pass this to every call */

  /* Enqueues function(arguments) on the stream, with a copy of the `bytes` at `arguments`. On a
   * simulated platform this launches a kernel and captures it, and the function reads and writes
   * device memory as a kernel does. On a real device the function runs on the host and may not
   * use the device. `name` is the kernel's name in reports. */
  plumb_status (*launch)(void* context, const char* name, void (*function)(const void* arguments),
                         const void* arguments, size_t bytes, plumb_stream stream);

  /* Scratch memory for work on the stream, 256-byte aligned; NULL if there is none. A capture
   * can get only as much in total as was allocated before it. Released memory may be reused by
   * work that is enqueued later on the stream, even if work that uses it is still pending, and
   * by nothing else. Memory that is not released lives until its stream is destroyed, at the
   * latest at the end of the case. A case may use several streams, also from one thread. */
  void* (*allocate)(void* context, size_t bytes, plumb_stream stream);
  plumb_status (*release)(void* context, void* memory, plumb_stream stream);

  /* The device of the stream; NULL if the stream is not plumb's. */
  const plumb_device* (*device)(void* context, plumb_stream stream);

  /* Tells plumb, in one line, why the running launcher will not return PLUMB_OK. */
  void (*explain)(void* context, const char* why);
} plumb_host;

#ifdef __cplusplus
}
#endif

#endif
