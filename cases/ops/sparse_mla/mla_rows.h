// SPDX-License-Identifier: Apache-2.0
//
// Row parameters and words that all sparse MLA ops share.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "cases/ops/sparse_mla/mla_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tables/problem.h"

namespace plumb::cases {

// Index of the row's word in `words`; 0 if the row has none. Throws BadRow for any other word.
std::size_t choose_word(const Row& row, std::string_view parameter,
                        const std::vector<std::string_view>& words);
template <class T>
T choose(const Row& row, std::string_view parameter,
         const std::vector<std::pair<std::string_view, T>>& words) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : words) names.push_back(name);
  return words[choose_word(row, parameter, names)].second;
}

// Reads the members that every sparse MLA has (heads, form, lengths, sinks, holes, strides) into
// `shape`. Its other members stay.
void read_candidates(const Row& row, MlaShape& shape);
// Append the parameters and words that read_candidates reads.
std::vector<Parameter> with_candidate_parameters(std::vector<Parameter> parameters);
std::vector<WordParameter> with_candidate_words(std::vector<WordParameter> words);
// Throws BadRow for combinations without meaning, such as ragged lists without lengths.
void check_candidates(const Row& row, const MlaShape& shape);

}  // namespace plumb::cases
