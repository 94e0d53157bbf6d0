// SPDX-License-Identifier: Apache-2.0
//
// What a trace says of the calls of an engine (docs/traces.md), apart from how HDF5 holds it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hdf5/handle.h"

namespace plumb::trace {

// A trace that cannot be used. One line: which file, where in it, and what is wrong.
using BadTrace = hdf5::BadFile;

// What the bytes of an element mean.
struct ElementType {
  std::string name;  // "bf16", "e4m3fn", "e2m1x2" (two codes in a byte)
  int bytes = 0;
};
// Nothing for an unknown name.
std::optional<ElementType> element_type(const std::string& name);

struct TraceTensor {
  ElementType type;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements, as in the engine; empty: dense
  std::uint64_t storage = 0;          // names the allocation within a recording; 0: not known
  std::int64_t offset = 0;            // bytes from the start of the storage
  std::string data;                   // digest of the stored bytes, which are dense; "": redacted
  // Only these of the first dimension are stored, in this order: blocks of a paged cache.
  std::optional<std::vector<std::int64_t>> blocks;

  std::int64_t elements() const;  // of the shape
  // "[4, 0]": of the element that is stored at this place.
  std::string coordinates(std::int64_t place) const;
  std::size_t stored_bytes() const;  // of `data`
};

using TraceTensors = std::map<std::string, TraceTensor>;
using TraceScalar = std::variant<std::int64_t, double, std::string>;

struct TraceKernel {
  std::string name;
  std::vector<std::int64_t> grid;  // blocks; empty: not known
};

// What an engine's kernels of an op promise: values of the op's choices, and numerics.
struct Promise {
  std::string source;  // "vllm.toml:12"; "": nothing is promised
  std::map<std::string, std::string> words;
  std::map<std::string, TraceScalar> numerics;

  // "rounding = once, chains = 16"
  std::string text() const;
};

struct TraceCall {
  std::string op;  // plumb's name; "": an op that plumb does not have, as far as the recorder knows
  std::string name;         // the engine's
  std::int64_t layer = -1;  // -1: of none
  std::int64_t stream = 0;
  std::optional<std::int64_t> replay;  // of a graph, counted from 0; nothing: eager
  std::string invoke;                  // a line of Python that makes the call; "": not known
  std::int64_t began = 0;              // number of calls that had ended when this one began
  std::vector<TraceKernel> kernels;
  std::map<std::string, TraceScalar> scalars;   // numbers and words of the call
  std::map<std::string, TraceScalar> numerics;  // what the kernel promises
  Promise profile;                              // for what these two do not say
  TraceTensors before, after;                   // a tensor of both is changed in place
};

struct TraceStep {
  std::int64_t rank = 0, step = 0;
  bool complete = false;  // all writes to memory of recorded tensors are recorded
  std::map<std::string, std::string> provenance;
  std::vector<TraceCall> calls;
};

// Throws BadTrace that begins with `where`, for text that is anything else than docs/traces.md
// says.
TraceStep parse_step(const std::string& text, const std::string& where);

}  // namespace plumb::trace
