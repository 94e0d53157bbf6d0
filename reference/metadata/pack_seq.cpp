// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/pack_seq.h"

#include <stdexcept>

namespace plumb::reference {

std::vector<std::int64_t> pack_seq(const std::vector<std::int64_t>& lengths,
                                   std::int64_t max_length) {
  std::vector<std::int64_t> token_of_row;
  std::int64_t token = 0;
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > max_length) {
      throw std::invalid_argument("pack_seq: a length outside [0, max_length]");
    }
    for (std::int64_t i = 0; i < max_length; ++i) token_of_row.push_back(i < length ? token++ : -1);
  }
  return token_of_row;
}

}  // namespace plumb::reference
