// SPDX-License-Identifier: Apache-2.0
//
// Shared by the cases with rotary embeddings: heads of 512 dims of which the last 64 are rotated,
// positions up to a million, and the cache of cosines and sines. Only the rows of a few positions
// exist in that cache.
//
//   exact        quarter turns
//   real         any angle
//   adversarial  also half and eighth turns, and cosines and sines with a factor (YaRN)
//
// At position 0 the rotation is the identity.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "reference/norm/rope.h"

namespace plumb::cases {

enum class Positions {
  any,       // drawn from the positions that exist, in no order and with repeats
  ascending  // token t has the t-th of the positions that exist; token 0 has position 0
};
inline const WordParameter kPositions{
    "positions", {"any", "ascending"}, "of the tokens: in no order, or each behind the one before"};
Positions positions_of(const Row& row);

inline constexpr std::int64_t kExistingPositions = 22;
// Adds the tensors `positions` and `cos_sin`. Only the rows of positions that exist have memory.
template <class P>
void add_rope(TablePart<P>& t, const Formula& tokens) {
  t.input("positions", &P::positions, {tokens}, "of each token");
  t.input("cos_sin", &P::cos_sin,
          {in_call(kExistingPositions, limit(&EngineLimits::positions, "positions")),
           reference::kRopeDim},
          "of each position 32 cosines, then 32 sines");
}
void place_rope(TensorSpec& spec);  // places each row of cos_sin at its position
// Fills `positions` and `cos_sin`. Padded tokens have position 0, or with `foreign` padding the
// positions of another step.
void fill_rope(const Step& step, Positions how, TensorSet& tensors);
// Row of cos_sin on the host, for each token. Throws BadRow for a position that a call's table
// lacks.
std::vector<std::int64_t> rope_rows(const TensorSet& tensors);

// A copy of columns [begin, end) of a bf16 tensor's rows. Its elements know where they came from.
HostTensor columns_of(const HostTensor& tensor, std::string_view name, std::int64_t begin,
                      std::int64_t end);

}  // namespace plumb::cases
