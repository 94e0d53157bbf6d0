// SPDX-License-Identifier: Apache-2.0
//
// Candidate lists as V4 on ROCm has them: dense tables, then ragged lists made from them in buffers
// with fixed addresses   [2.3, 2.4, 2.6, 2.7]. Built once per step for the sliding window and the
// C128A layers. C4A layers build their own lists after their top-k.
#pragma once

#include <cstdint>
#include <string>

#include "decode/metadata/dense_metadata.h"
#include "decode/policies/policies.h"
#include "device/caching_allocator.h"

namespace plumb::device::decode {

// Slots of row r: indices[indptr[r]] .. indices[indptr[r + 1] - 1].
struct Ragged {
  std::int32_t* indices = nullptr;  // [max_tokens * width]
  std::int32_t* indptr = nullptr;   // [max_tokens + 1]
  std::int64_t width = 0;           // largest number of slots of a row
};

plumb_mla_candidates ragged_candidates(const Ragged& ragged);

class RaggedMetadata final : public DenseMetadata {
 public:
  RaggedMetadata(const Geometry& geometry, const MetadataPolicy& policy, EngineMemory& memory,
                 CachingAllocator& temporaries);

  void build(const Caller& call, const StepInputs& inputs, const StepPlan& plan) override;
  plumb_mla_candidates window() const override { return ragged_candidates(window_.handed_out); }
  plumb_mla_candidates c128a() const override { return ragged_candidates(c128a_.handed_out); }

 private:
  struct ListBuffers {
    Ragged persistent, handed_out;
    std::int64_t copies = 0;  // copies made into `persistent` so far
  };
  // Turns a dense table into its ragged list in `to`, by way of temporaries.
  void flatten(const Caller& call, const std::string& name, const std::int32_t* dense,
               const std::int32_t* lengths, std::int64_t rows, ListBuffers& to);
  std::int32_t* words(std::int64_t count, const std::string& label);
  void keep(const Caller& call, const std::string& name, const Ragged& built, std::int64_t rows,
            const ListBuffers& to);

  const MetadataPolicy& policy_;
  CachingAllocator& temporaries_;
  ListBuffers window_, c128a_;
};

}  // namespace plumb::device::decode
