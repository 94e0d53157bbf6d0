// SPDX-License-Identifier: Apache-2.0
//
// Inputs of a sparse MLA: candidate lists over paged caches or over a workspace of rows, queries,
// attention sinks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/ops/sparse_mla/mla_tokens.h"
#include "cases/tables/problem.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

enum class MlaLengths {
  none,   // dense lists alone: all candidates of the width count
  full,   // all candidates of the width
  edges,  // 0, 1, around the first two block borders, the width; changes with the step
  random  // 0 to the width
};
enum class MlaSinks { none, finite, infinite };

// A cache and the candidates in it. Tensors: <name>_cache (a workspace of rows: <name>),
// <name>_indices, and <name>_lengths or <name>_indptr. Request r reads sequence r % sequences.
struct MlaSide {
  std::string name;
  std::int64_t width = 0;  // most candidates of a query row; 0: there is no such cache
  MlaCacheShape cache;
  bool scattered = false;  // tokens anywhere in the context, else one window of it

  std::string cache_name() const;
};

struct MlaShape {
  std::int64_t requests = 1, queries = 1, heads = 1;
  std::int64_t block_n = 64, parts = 1, fixed_overhead = 5;  // of the tile plan
  bool ragged = false, strided = false, repeats = false;
  MlaLengths lengths = MlaLengths::full;
  MlaSinks sinks = MlaSinks::none;
  // Candidates to be skipped: -1, or any index outside of a workspace of rows.
  std::int64_t holes_percent = 0;
  std::int64_t hole_run = 1;      // length of runs that are all holes or none
  std::int64_t list_lead = 0;     // ragged: entries in front of the first row
  std::int64_t lonely_every = 0;  // every n-th row has holes alone; 0: no row
  float sm_scale = 1;
  MlaSide main, extra;

  std::int64_t rows() const { return requests * queries; }
  std::int64_t key_dims() const { return main.cache.key_dims(); }
};

// Number of candidates of each request. Dead requests have 0, except if there are no lengths.
std::vector<std::int32_t> mla_lengths(const MlaShape& shape, const MlaSide& side, const Step& step);

// Nanoseconds of the simulated attention, and of its reference (Problem::cost, reference_cost).
double mla_cost(const MlaShape& shape);
double mla_reference_cost(const MlaShape& shape);
// Work of the scores of all candidates, their exponentials, and the weighted sum of values.
ReferenceWork mla_work(const MlaShape& shape, const TensorSet& tensors);

// Fills all inputs. Dead requests have no candidates, so that their rows are promised too.
void fill_mla_inputs(const MlaShape& shape, const Step& step, TensorSet& tensors);

}  // namespace plumb::cases
