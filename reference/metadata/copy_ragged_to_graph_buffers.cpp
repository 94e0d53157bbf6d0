// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/copy_ragged_to_graph_buffers.h"

namespace plumb::reference {

void copy_ragged_to_graph_buffers(const std::int32_t* indices, std::int64_t entries,
                                  const std::int32_t* indptr, std::int64_t rows,
                                  GraphBuffers& buffers) {
  for (std::int64_t row = 0; row <= rows; ++row) buffers.indptr.at(row) = indptr[row];
  for (std::int64_t i = 0; i < entries; ++i) buffers.indices.at(i) = indices[i];
}

}  // namespace plumb::reference
