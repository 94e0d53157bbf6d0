// SPDX-License-Identifier: Apache-2.0
//
// What the cases with rotary embeddings share: heads of 512 of whose dims the last 64 are rotated,
// positions up to a million, and the cache of cosines and sines, of which only the rows of a few
// positions exist.
//
//   exact        quarter turns
//   real         any angle
//   adversarial  also half and eighth turns, and cosines and sines with a factor (YaRN)
//
// Position 0 is the identity.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "reference/norm/rope.h"

namespace plumb::cases {

enum class Positions {
  any,       // 0, neighbours, repeated, the last one: in no order
  ascending  // token t has the t-th of the positions that exist; token 0 has position 0
};
inline const WordParameter kPositions{
    "positions", {"any", "ascending"}, "of the tokens: in no order, or each behind the one before"};
Positions positions_of(const Row& row);

inline constexpr std::int64_t kExistingPositions = 22;
// `positions` and `cos_sin`, of which a case has the rows of the positions that exist.
template <class P>
void add_rope(TablePart<P>& t, const Formula& tokens) {
  t.input("positions", &P::positions, {tokens}, "of each token");
  t.input("cos_sin", &P::cos_sin,
          {in_call(kExistingPositions, limit(&EngineLimits::positions, "positions")),
           reference::kRopeDim},
          "of each position 32 cosines, then 32 sines");
}
void place_rope(TensorSpec& spec);  // cos_sin: each row where its position has it
// Padded tokens have position 0, or an earlier step's.
void fill_rope(const Step& step, Positions how, TensorSet& tensors);
// Row of cos_sin on the host, for each token. Throws BadRow for a position that a call's table
// lacks.
std::vector<std::int64_t> rope_rows(const TensorSet& tensors);

// Columns [begin, end) of a bf16 tensor's rows, by themselves.
HostTensor columns_of(const HostTensor& tensor, std::string_view name, std::int64_t begin,
                      std::int64_t end);

}  // namespace plumb::cases
