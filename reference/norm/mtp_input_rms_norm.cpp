// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/mtp_input_rms_norm.h"

#include <algorithm>

#include "reference/norm/rms_norm.h"

namespace plumb::reference {

MtpInputRmsNormOutputs mtp_input_rms_norm(const MtpInputRmsNormInputs& inputs,
                                          const Numerics& numerics) {
  const std::int64_t hidden = inputs.hidden;
  std::vector<std::uint16_t> masked(inputs.embeds, inputs.embeds + inputs.tokens * hidden);
  for (std::int64_t token = 0; token < inputs.tokens; ++token) {
    if (inputs.positions[token] != 0) continue;
    std::fill_n(masked.begin() + token * hidden, hidden, std::uint16_t{0});
  }
  const std::int64_t slots = inputs.tokens * inputs.hc_mult;
  return {rms_norm({masked.data(), inputs.enorm_weight, inputs.tokens, hidden, hidden, inputs.eps,
                    inputs.rounding},
                   numerics),
          rms_norm({inputs.previous_hidden, inputs.hnorm_weight, slots, hidden, hidden, inputs.eps,
                    inputs.rounding},
                   numerics)};
}

}  // namespace plumb::reference
