// SPDX-License-Identifier: Apache-2.0
//
// A call made outside plumb, as a row: the row parameters are solved from the shapes of the
// tensors.
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
  std::vector<std::int64_t> strides;  // in bytes, of any size and sign
  const std::byte* data = nullptr;
};

// Names are those of plumb list --arguments. Missing numbers and words have the op's defaults.
struct GivenCall {
  std::map<std::string, GivenTensor, std::less<>> tensors;
  std::map<std::string, std::int64_t, std::less<>> integers;  // row parameters, or members
  std::map<std::string, std::string, std::less<>> words;
  std::map<std::string, float, std::less<>> reals;  // members: eps, sm_scale
  // A call has each tensor whole. A call of a test may have the pieces that a case has of a large
  // tensor, at the places where the case has them.
  bool in_pieces = false;
};

// Throws BadRow with the call's own names: for an unknown name, shapes that contradict each other,
// a missing tensor, or a parameter out of range. Missing words are the platform's. If
// `needs_outputs` is false, outputs may be missing.
Row row_of(const OpDefinition& op, const GivenCall& call, const device::Properties& platform,
           bool needs_outputs);

// Of these tensors, by name, the given places of the first dimension are needed alone.
using NeededPlaces = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

// The tensors of the row's problem with the bytes of the call, or zeros for what is missing or not
// needed. Throws BadRow for an array of another type.
TensorSet tensors_of(const OpDefinition& op, const Problem& problem, const GivenCall& call,
                     const NeededPlaces& needed = {});

// A tensor of as many rows as a call has, all of which exist: more or fewer than a case makes.
TensorSpec with_rows(TensorSpec spec, std::int64_t rows);

// True if the call has the expectation's tensor.
bool has_stored(const GivenCall& call, const Expectation& expectation);

}  // namespace plumb::cases
