// SPDX-License-Identifier: Apache-2.0
//
// Rows: the named parameters of a case, from a case file. And schemas: which parameters a row may
// set.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tensors/bad_row.h"

namespace plumb::cases {

enum class Tier { smoke, standard, full };

struct Row {
  std::string op, name, why;
  std::string where;  // file and line: "cases/ops/hyper_connection/mhc_pre.toml:12"
  Tier tier = Tier::standard;
  Tier concurrent = Tier::full;  // first tier of scenarios `concurrent` and `queued`
  std::optional<Tier> plugin;    // in place of `tier` if a plug-in's kernels run
  // "", "empty", "zero" or "identity": a pass is meant to prove little.
  std::string trivial;
  std::string known_bug;    // "issue, date": expected to fail; a pass counts as a failure
  bool real_only = false;   // only for real devices: too large to simulate
  bool eager_only = false;  // only the eager case is below tier full
  bool golden =
      false;  // the eager case has a golden (a stored earlier result) on platforms with goldens
  // Number of rows of the launch from which this problem's rows were picked; 0: not picked.
  std::int64_t picked_from = 0;
  // Every parameter, with defaults filled in.
  std::map<std::string, std::int64_t, std::less<>> integers;
  std::map<std::string, std::string, std::less<>> words;
  std::map<std::string, float, std::less<>> reals;  // members of the C struct: eps, sm_scale
  std::string contract;  // the contract of an implementation; its values are in `words`

  std::int64_t integer(std::string_view parameter) const;  // throws std::out_of_range
  // Number of rows of the whole launch, for behaviour that depends on it (another path for few
  // tokens).
  std::int64_t launched(std::string_view parameter) const;
  std::string_view word(std::string_view parameter) const;  // "" if unset
  float real(std::string_view member, float otherwise) const;
};

struct Parameter {
  std::string_view name;
  std::int64_t default_value;
  std::int64_t least, most;
  std::string_view meaning;
  // It changes the size of numbers (an exponent, a floor), not a shape: its plainest value is the
  // default.
  bool of_values = false;
};

// A word parameter of rows: selects the kind of inputs, or the form of an argument.
struct WordParameter {
  std::string_view name;
  std::vector<std::string_view> values;  // empty: any text is allowed
  std::string_view meaning;              // also says what a row without the word means
};

// Two values of a choice that no row separates, and why: a kernel that implements `of` also passes
// when it is judged under the contract `under`. "*" stands for any value.
struct MarkedPair {
  std::string_view of, under, why;
};

// A choice: a question in which right kernels of different engines differ. A row, or an
// implementation's declaration, names one of the values. A row without it has the first value.
struct ContractChoice {
  std::string_view name;
  std::vector<std::string_view> values;
  std::string_view meaning;
  // Pairs of values that no row can separate: the contract `under` permits the results of a kernel
  // of `of`, or plumb has no kernel whose results would differ. For every other pair a row must
  // exist.
  std::vector<MarkedPair> unseparated = {};

  // Why the pair is marked as unseparated; "" if it is not marked.
  std::string_view why_unseparated(std::string_view of, std::string_view under) const;
};

// The parameters that rows of one op (or of decode steps) may set. Anything else in a row is an
// error.
struct RowSchema {
  std::string_view name;  // first part of a case's name
  std::string_view summary;
  std::vector<Parameter> parameters;
  std::vector<WordParameter> word_parameters = {};
  std::vector<ContractChoice> choices = {};  // words with a fixed list of values
  std::vector<std::string_view> reals = {};  // float members of the C struct, from the op's table

  // Names of all words, including choices.
  std::vector<std::string_view> words() const;
  // The values of a word; empty: any text is allowed.
  std::vector<std::string_view> values_of(std::string_view word) const;
  // Throws BadRow if `parameter` is a word and `value` is not one of its values. The message starts
  // with `where`.
  void check_word(std::string_view parameter, std::string_view value, std::string_view where) const;
};

}  // namespace plumb::cases
