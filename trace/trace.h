// SPDX-License-Identifier: Apache-2.0
//
// The contents of a trace: the calls of an engine (docs/traces.md), independent of the HDF5 file
// format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hdf5/handle.h"

namespace plumb::trace {

// Thrown for a trace that cannot be used. The message is one line: the file, the place in it, and
// the defect.
using BadTrace = hdf5::BadFile;

// Format of an element.
struct ElementType {
  std::string name;  // "bf16", "e4m3fn", "e2m1x2" (two codes in a byte)
  int bytes = 0;
};
// nullopt for an unknown name.
std::optional<ElementType> element_type(const std::string& name);

struct TraceTensor {
  ElementType type;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements, as in the engine; empty: dense
  std::uint64_t storage = 0;          // id of the allocation within a recording; 0: unknown
  std::int64_t offset = 0;            // bytes from the start of the storage
  std::string data;                   // digest of the stored bytes, which are dense; "": redacted
  // Indices in the first dimension that are stored, in this order: blocks of a paged cache.
  std::optional<std::vector<std::int64_t>> blocks;

  std::int64_t elements() const;  // number of elements of the shape
  // Coordinates of the element stored at this place: "[4, 0]".
  std::string coordinates(std::int64_t place) const;
  std::size_t stored_bytes() const;  // size of `data`
};

using TraceTensors = std::map<std::string, TraceTensor>;
using TraceScalar = std::variant<std::int64_t, double, std::string>;

struct TraceKernel {
  std::string name;
  std::vector<std::int64_t> grid;  // blocks; empty: unknown
};

// What an engine's kernels promise about an op: values of the op's choices, and numerics.
struct Promise {
  std::string source;  // where it is written: "vllm.toml:12"; "": no promise
  std::map<std::string, std::string> words;
  std::map<std::string, TraceScalar> numerics;

  // "rounding = once, chains = 16"
  std::string text() const;
};

struct TraceCall {
  // plumb's name of the op; "": the recorder knows no op of plumb for this call.
  std::string op;
  std::string name;         // the engine's name of the call
  std::int64_t layer = -1;  // -1: no layer
  std::int64_t stream = 0;
  std::optional<std::int64_t> replay;  // number of the graph replay, from 0; nullopt: eager
  std::string invoke;                  // a line of Python that makes the call; "": unknown
  std::int64_t began = 0;              // number of calls that had ended when this one began
  std::vector<TraceKernel> kernels;
  std::map<std::string, TraceScalar> scalars;   // numbers and words of the call
  std::map<std::string, TraceScalar> numerics;  // promises of the kernel
  Promise profile;                              // for values that scalars and numerics do not give
  TraceTensors before, after;                   // a tensor in both is changed in place
  // Chosen rows of the call, whose tensors have only these; nullopt: it is whole.
  std::optional<std::vector<std::int64_t>> rows;
  // What several ranks promise (docs/traces.md, "Several ranks").
  std::vector<std::string> replicated;  // tensors that are equal on all ranks of the group
  std::string collective;               // "all_reduce", "all_gather", "reduce_scatter"; "": none
  std::vector<std::int64_t> group;      // ranks, in the order of their parts; empty: all
};

struct TraceStep {
  std::int64_t rank = 0, step = 0;
  bool complete = false;  // true if all writes to memory of recorded tensors are recorded
  std::map<std::string, std::string> provenance;
  std::vector<TraceCall> calls;
};

// Throws BadTrace, with a message that begins with `where`, for text that does not follow
// docs/traces.md.
TraceStep parse_step(const std::string& text, const std::string& where);

}  // namespace plumb::trace
