// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/mhc_pre_broadcast.h"

namespace plumb::reference {

Streams broadcast(const std::uint16_t* residual, std::int64_t tokens, std::int64_t hidden,
                  std::int64_t token_stride) {
  return {residual, tokens, hidden, token_stride, 0};
}

}  // namespace plumb::reference
