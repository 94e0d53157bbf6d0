// SPDX-License-Identifier: Apache-2.0
//
// Finds the candidates of a query row, in a dense or a ragged list.
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// Number of candidates of a query of `request` in one cache.
PLUMB_DEVICE inline int candidate_count(const plumb_mla_candidates& candidates, int request) {
  if (candidates.indices == nullptr) return 0;
  if (candidates.indptr != nullptr) {
    return candidates.indptr[request + 1] - candidates.indptr[request];
  }
  return candidates.lengths != nullptr ? candidates.lengths[request]
                                       : static_cast<int>(candidates.width);
}

PLUMB_DEVICE inline const std::int32_t* indices_of(const plumb_mla_candidates& candidates,
                                                   int request, int query) {
  if (candidates.indptr != nullptr) return candidates.indices + candidates.indptr[request];
  return candidates.indices + request * candidates.request_stride + query * candidates.query_stride;
}

// Ragged lists have no query dimension: each request has one query.
inline bool legal_candidates(const plumb_mla_candidates& candidates, std::int64_t queries) {
  if (candidates.indices == nullptr || candidates.width < 1 || !fits_int(candidates.width)) {
    return false;
  }
  return candidates.indptr == nullptr || (candidates.lengths == nullptr && queries == 1);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
