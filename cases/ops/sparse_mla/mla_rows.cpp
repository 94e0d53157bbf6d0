// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/sparse_mla/mla_rows.h"

#include <fmt/format.h>

namespace plumb::cases {

namespace {

template <class T>
std::vector<T> joined(std::vector<T> list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

}  // namespace

std::size_t choose_word(const Row& row, std::string_view parameter,
                        const std::vector<std::string_view>& words) {
  const std::string_view word = row.word(parameter);
  if (word.empty()) return 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return i;
  }
  throw BadRow(fmt::format("{}: {} cannot be '{}'", row.where, parameter, word));
}

void read_candidates(const Row& row, MlaShape& shape) {
  shape.heads = row.integer("heads");
  shape.ragged = choose<bool>(row, "form", {{"dense", false}, {"ragged", true}});
  shape.lengths = choose<MlaLengths>(row, "lengths",
                                     {{"full", MlaLengths::full},
                                      {"none", MlaLengths::none},
                                      {"edges", MlaLengths::edges},
                                      {"random", MlaLengths::random}});
  shape.sinks = choose<MlaSinks>(
      row, "sinks",
      {{"finite", MlaSinks::finite}, {"none", MlaSinks::none}, {"infinite", MlaSinks::infinite}});
  shape.strided = row.integer("strided") != 0;
  shape.repeats = row.integer("repeats") != 0;
  shape.holes_percent = row.integer("holes_percent");
  shape.hole_run = row.integer("hole_run");
  shape.list_lead = row.integer("list_lead");
  shape.lonely_every = row.integer("lonely_every");
}

std::vector<Parameter> with_candidate_parameters(std::vector<Parameter> parameters) {
  return joined<Parameter>(
      std::move(parameters),
      {{"heads", 16, 1, 1024, "query heads of this rank"},
       {"holes_percent", 0, 0, 100, "candidates to be skipped"},
       {"hole_run", 1, 1, 1 << 20, "so many candidates in turn are all skipped or none"},
       {"list_lead", 0, 0, 1 << 20,
        "entries in front of the first ragged list, as far as there is room"},
       {"lonely_every", 0, 0, 4096, "each so many-th row has no candidate but these; 0: none"},
       {"repeats", 0, 0, 1, "1: every fifth candidate names the slot of the one before"},
       {"strided", 0, 0, 1, "1: gaps between the rows of q and of dense indices"},
       {"far", 0, 0, 1, "1: keys around 2^31 and 2^32 bytes into what holds them"}});
}

std::vector<WordParameter> with_candidate_words(std::vector<WordParameter> words) {
  return joined<WordParameter>(
      std::move(words),
      {{"form",
        {"dense", "ragged"},
        "of the lists of candidates: a row of width each, or one behind the other"},
       {"lengths",
        {"full", "none", "edges", "random"},
        "of the lists: the width, not given, around block borders, any"},
       {"sinks", {"finite", "none", "infinite"}, "of the heads"}});
}

void check_candidates(const Row& row, const MlaShape& shape) {
  if (shape.ragged && (shape.queries > 1 || shape.lengths == MlaLengths::none)) {
    throw BadRow(
        fmt::format("{}: a ragged row has one query, and its length in indptr", row.where));
  }
  if (shape.list_lead != 0 && (!shape.ragged || shape.lengths == MlaLengths::full)) {
    throw BadRow(fmt::format("{}: list_lead is of ragged lists that are not full", row.where));
  }
  if ((shape.lonely_every == 1) != (row.trivial == "zero")) {
    throw BadRow(fmt::format(
        "{}: trivial has to be \"zero\" where lonely_every is 1, and only there", row.where));
  }
}

}  // namespace plumb::cases
