// SPDX-License-Identifier: Apache-2.0
//
// Members of the structs that sparse MLA ops share, for the tables of these ops.
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <functional>
#include <string>

#include "cases/ops/sparse_mla/mla_inputs.h"
#include "cases/tables/table_part.h"

namespace plumb::cases {

using CacheOfRow = std::function<MlaCacheShape(const Row&)>;

// Number of blocks. A case computes it with `count`. A recorded call has all its blocks side by
// side, and the row parameter `given` is their number.
Formula mla_blocks(const std::string& given, CacheOfRow cache_of,
                   std::int64_t (MlaCacheShape::*count)() const);

enum class MlaLayouts { all, v4 };  // cache layouts that an op supports

// all: FlashMLA. out: ROCm's kernels (docs/operations, section 2.10).
inline const ContractChoice kMlaOutputs{
    "outputs",
    {"all", "out"},
    "out: neither lse nor max_logits is written; their pointers are null",
    {{"*", "*", "plumb's kernels write each output that has a pointer"}}};

// Members of a paged cache. `prefix` of its row parameters: "" or "extra_".
struct MlaCacheMembers {
  TablePart<plumb_mla_cache> part;
  Formula page, blocks, layout, block_bytes, dialect;

  MlaCacheMembers(const TablePart<plumb_mla_cache>& cache, MlaLayouts layouts,
                  const std::string& prefix, const WordChoices& dialects,
                  const CacheOfRow& cache_of);
  void add_tensor(const std::string& name);
};

// Adds <name>_indices, and <name>_lengths or <name>_indptr. For a recorded call, `form` has to be
// given before.
void add_mla_candidates(TablePart<plumb_mla_candidates> candidates, const std::string& name,
                        const Formula& width, const Formula& requests, const Formula& queries);

// Places far blocks of a side's cache or workspace. Does nothing for other tensors.
void place_mla_cache(const MlaSide& side, TensorSpec& spec);

}  // namespace plumb::cases
