// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/unpack_seq.h"

#include <stdexcept>

namespace plumb::reference {

std::vector<std::int64_t> unpack_seq(const std::vector<std::int64_t>& lengths,
                                     std::int64_t max_length) {
  std::vector<std::int64_t> row_of_token;
  for (std::int64_t sequence = 0; sequence < std::ssize(lengths); ++sequence) {
    if (lengths[sequence] < 0 || lengths[sequence] > max_length) {
      throw std::invalid_argument("unpack_seq: a length outside [0, max_length]");
    }
    for (std::int64_t i = 0; i < lengths[sequence]; ++i) {
      row_of_token.push_back(sequence * max_length + i);
    }
  }
  return row_of_token;
}

}  // namespace plumb::reference
