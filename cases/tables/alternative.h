// SPDX-License-Identifier: Apache-2.0
//
// Other declarations under which a failed case may pass: other values of the op's choices
// (questions that right kernels answer differently, such as the floor of a scale), and numerics
// that promise less.
#pragma once

#include <plumb/ops/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/row.h"

namespace plumb::cases {

struct OpDefinition;

// Changes to a declaration, as words: `contract` is "floor=1e-4 ties=even", `numerics` is
// "product=bf16". Empty: unchanged.
struct Alternative {
  std::string contract, numerics;

  std::size_t changes() const;
  // All changes as text: "floor = 1e-4 and product = bf16".
  std::string text() const;
  // The changed contract as written in a plug-in's entry: "contract = "floor=1e-4"".
  std::string declaration() const;
  bool operator==(const Alternative&) const = default;
};

// Text for a report: "right if floor = 1e-4: declare it", with the alternatives that have the
// fewest changes. "" if there are none.
std::string right_if(const std::vector<Alternative>& right);

// Text for a report: "declared as skip = never it passes, because the wrong values are then not
// tested". "" if there are none.
std::string passes_if(const std::vector<Alternative>& passing);

// The numerics, changed by the words of Alternative::numerics.
plumb_numerics redeclared(plumb_numerics declared, std::string_view words);

using IsRight = std::function<bool(const Alternative&)>;

// For each choice of the op, one alternative for each value other than the row's own.
std::vector<Alternative> single_changes(const OpDefinition& op, const Row& row);

// The combinations of choice values for which `is_right` returns true. Calls it at most 64 times,
// starting with the fewest changes.
std::vector<Alternative> right_contracts(const OpDefinition& op, const Row& row,
                                         const IsRight& is_right);
// As right_contracts. If none is right, also tries numerics that promise less than `declared`,
// alone or together with one changed choice, and returns the strongest that pass.
std::vector<Alternative> right_alternatives(const OpDefinition& op, const Row& row,
                                            const plumb_numerics& declared,
                                            const IsRight& is_right);

}  // namespace plumb::cases
