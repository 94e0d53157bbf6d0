// SPDX-License-Identifier: Apache-2.0
//
// copy_ragged_to_graph_buffers (operations' specification, 2.4): copies a ragged list into buffers
// that outlive the step.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

struct GraphBuffers {
  std::vector<std::int64_t> indices, indptr;
};

// `buffers` holds the data of earlier steps. The op overwrites the first `entries` indices and the
// first rows + 1 elements of indptr, and nothing else. Throws std::out_of_range if they do not fit.
void copy_ragged_to_graph_buffers(const std::int32_t* indices, std::int64_t entries,
                                  const std::int32_t* indptr, std::int64_t rows,
                                  GraphBuffers& buffers);

}  // namespace plumb::reference
