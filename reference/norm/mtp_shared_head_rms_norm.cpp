// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/mtp_shared_head_rms_norm.h"

#include "reference/norm/rms_norm.h"

namespace plumb::reference {

Estimate mtp_shared_head_rms_norm(const std::uint16_t* x, const std::uint16_t* weight,
                                  std::int64_t tokens, std::int64_t hidden, double eps,
                                  NormRounding rounding, const Numerics& numerics) {
  return rms_norm({x, weight, tokens, hidden, hidden, eps, rounding}, numerics);
}

}  // namespace plumb::reference
