// SPDX-License-Identifier: Apache-2.0
//
// Rows: named parameters of one case, from a case file, and what a row may set.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tensors/bad_row.h"

namespace plumb::cases {

enum class Tier { smoke, standard, full };

struct Row {
  std::string op, name, why;
  std::string where;  // "cases/ops/hyper_connection/mhc_pre.toml:12"
  Tier tier = Tier::standard;
  Tier concurrent = Tier::full;  // from which tier on it has a concurrent case
  std::string trivial;           // "", "empty", "zero", "identity": a pass proves little by intent
  std::string known_bug;         // "issue, date": expected to fail, fails when it passes
  bool real_only = false;        // a simulated device could not afford it
  bool eager_only = false;       // cases of other scenarios are of tier full
  bool golden = false;           // its eager case has one wherever a platform has goldens
  std::int64_t picked_from = 0;  // rows of the launch that this problem's are picked from; 0: all
  std::map<std::string, std::int64_t, std::less<>> integers;  // defaults filled in
  std::map<std::string, std::string, std::less<>> words;
  std::map<std::string, float, std::less<>> reals;  // members of the C struct: eps, sm_scale
  std::string contract;  // that an implementation declares: its values stand in `words`

  std::int64_t integer(std::string_view parameter) const;  // throws std::out_of_range
  // How many rows the launch has, for what depends on that: a path of its own for few tokens.
  std::int64_t launched(std::string_view parameter) const;
  std::string_view word(std::string_view parameter) const;  // "" if unset
  float real(std::string_view member, float otherwise) const;
};

struct Parameter {
  std::string_view name;
  std::int64_t default_value;
  std::int64_t least, most;
  std::string_view meaning;
};

// A word of rows: what their inputs are, or which form an argument has.
struct WordParameter {
  std::string_view name;
  std::vector<std::string_view> values;  // none: any text
  std::string_view meaning;              // also of a row without the word
};

// Something that the pair of a kernel of the value `of` and a contract that says `under` lacks, and
// why. "*" stands for every other value.
struct MarkedPair {
  std::string_view of, under, why;
};

// What right kernels of different engines do differently. A row, or the declaration of an
// implementation, names one of the values; a row that names none has the first.
struct ContractChoice {
  std::string_view name;
  std::vector<std::string_view> values;
  std::string_view meaning;
  // No row tells a kernel of `of` from the contract `under`: the contract permits its results, or
  // plumb has no kernel whose results would differ. Of all others a row does.
  std::vector<MarkedPair> unseparated = {};

  // The mark's reason. "": there is no mark.
  std::string_view why_unseparated(std::string_view of, std::string_view under) const;
};

// What the rows of one op, or those of decode steps, may set. Anything else in a row is an error.
struct RowSchema {
  std::string_view name;  // first part of a case's name
  std::string_view summary;
  std::vector<Parameter> parameters;
  std::vector<WordParameter> word_parameters = {};
  std::vector<ContractChoice> choices = {};  // words with known values
  std::vector<std::string_view> reals = {};  // floats of the C struct, from the op's table

  // All that are words, choices included.
  std::vector<std::string_view> words() const;
  // Throws BadRow where `parameter` is a word and `value` none of its values. `where`: stands in
  // front.
  void check_word(std::string_view parameter, std::string_view value, std::string_view where) const;
};

}  // namespace plumb::cases
