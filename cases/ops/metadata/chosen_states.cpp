// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/metadata/chosen_states.h"

#include <algorithm>

#include "cases/tensors/fill.h"

namespace plumb::cases {

void fill_chosen_states(const Step& step, std::int64_t token, std::int64_t states,
                        std::int64_t top_k, std::int64_t width, std::int32_t* to,
                        bool any_negative) {
  for (std::int64_t j = 0; j < width; ++j) {
    const std::uint64_t bits = random_bits(mix(step.seed, 1), token * width + j);
    const auto any = static_cast<std::int64_t>(bits >> 33);
    std::int64_t state = step.fill == Fill::exact ? j : any % std::max<std::int64_t>(states, 1);
    if (j >= std::min(states, top_k)) state = step.fill == Fill::real ? -1 : any;
    const bool hole = step.fill == Fill::adversarial && bits % 4 == 0;
    to[j] = static_cast<std::int32_t>(state);
    if (hole) to[j] = any_negative ? negative_index(step, bits) : -1;
  }
}

}  // namespace plumb::cases
