// SPDX-License-Identifier: Apache-2.0
//
// A call made outside plumb, converted into a row: the row parameters are solved from the tensors'
// shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::cases {

struct GivenTensor {
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in bytes; any size and sign
  const std::byte* data = nullptr;
};

// The arguments of a call, named as in plumb list --arguments. Missing numbers and words have the
// op's defaults.
struct GivenCall {
  std::map<std::string, GivenTensor, std::less<>> tensors;
  // Row parameters, or members of the C struct.
  std::map<std::string, std::int64_t, std::less<>> integers;
  std::map<std::string, std::string, std::less<>> words;
  std::map<std::string, float, std::less<>> reals;  // members of the C struct: eps, sm_scale
  // False: each tensor is given whole. True (calls made by tests): a large tensor is given as the
  // pieces that a case has of it, in the same places.
  bool in_pieces = false;
};

// Finds the row of a call. Throws BadRow with the call's own names for an unknown name,
// contradictory shapes, a missing tensor, or a parameter out of range. A missing word has its first
// value, or the platform's. If `needs_outputs` is false, outputs may be missing.
Row row_of(const OpDefinition& op, const GivenCall& call, const device::Properties& platform,
           bool needs_outputs);

// Per tensor name, the indices of the first dimension that a verdict needs. Other indices need not
// be read.
using NeededPlaces = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

// The tensors of the row's problem with the bytes of the call. Missing tensors, and indices that
// are not read, are zero. Throws BadRow for an array of another type.
TensorSet tensors_of(const OpDefinition& op, const Problem& problem, const GivenCall& call,
                     const NeededPlaces& needed = {});

// The spec of a tensor that is given whole, with the call's number of rows, which may differ from a
// case's.
TensorSpec with_rows(TensorSpec spec, std::int64_t rows);

// True if the call has the output that the expectation is about.
bool has_stored(const GivenCall& call, const Expectation& expectation);

}  // namespace plumb::cases
