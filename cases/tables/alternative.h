// SPDX-License-Identifier: Apache-2.0
//
// What an implementation could declare in the place of what it declares: other values of its op's
// choices, and numerics that promise less.
#pragma once

#include <plumb/ops/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/row.h"

namespace plumb::cases {

struct OpDefinition;

// Both are words, "floor=1e-4 ties=even" and "product=bf16". Empty: as it is declared.
struct Alternative {
  std::string contract, numerics;

  std::size_t changes() const;
  // "floor = 1e-4 and product = bf16"
  std::string text() const;
  // "contract = "floor=1e-4"", as a plug-in's entry has it.
  std::string declaration() const;
  bool operator==(const Alternative&) const = default;
};

// "right if floor = 1e-4: declare it", of the alternatives with the fewest changes. "": there are
// none.
std::string right_if(const std::vector<Alternative>& right);

// "passes under skip = never, which does not ask for what is wrong here". "": there are none.
std::string passes_if(const std::vector<Alternative>& passing);

// The numerics with the words of an alternative.
plumb_numerics redeclared(plumb_numerics declared, std::string_view words);

using IsRight = std::function<bool(const Alternative&)>;

// Each value of each choice that is not the row's own.
std::vector<Alternative> single_changes(const OpDefinition& op, const Row& row);

// The combinations of values of the op's choices that `is_right` says yes to. At most 64 are asked
// for, those with the fewest changes first.
std::vector<Alternative> right_contracts(const OpDefinition& op, const Row& row,
                                         const IsRight& is_right);
// The same. If there is none, numerics that promise less than `declared`, the strongest that will
// do, alone or with one changed value.
std::vector<Alternative> right_alternatives(const OpDefinition& op, const Row& row,
                                            const plumb_numerics& declared,
                                            const IsRight& is_right);

}  // namespace plumb::cases
