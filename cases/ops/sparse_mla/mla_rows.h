// SPDX-License-Identifier: Apache-2.0
//
// What the rows of all sparse MLA ops say in the same words.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "cases/ops/sparse_mla/mla_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tables/problem.h"

namespace plumb::cases {

// One of the words that a parameter may be; the first is the default. Throws BadRow.
std::size_t choose_word(const Row& row, std::string_view parameter,
                        const std::vector<std::string_view>& words);
template <class T>
T choose(const Row& row, std::string_view parameter,
         const std::vector<std::pair<std::string_view, T>>& words) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : words) names.push_back(name);
  return words[choose_word(row, parameter, names)].second;
}

// Form, lengths, sinks, holes: what every sparse MLA has. The rest of the shape stays as it is.
void read_candidates(const Row& row, MlaShape& shape);
// The parameters and words that read_candidates takes.
std::vector<Parameter> with_candidate_parameters(std::vector<Parameter> parameters);
std::vector<WordParameter> with_candidate_words(std::vector<WordParameter> words);
// Throws BadRow for a combination that no kernel could mean.
void check_candidates(const Row& row, const MlaShape& shape);

}  // namespace plumb::cases
