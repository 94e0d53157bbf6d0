// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/alternative.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <utility>

#include "cases/tables/problem.h"
#include "cases/tensors/sort_by.h"

namespace plumb::cases {

namespace {

constexpr std::size_t kMostContracts = 64;

// A promise of plumb_numerics that a weaker promise can replace. Entries of one member are ordered:
// each permits everything that the entry before it permits.
struct WeakerPromise {
  std::string_view member, value;
  bool (*weakens)(const plumb_numerics& declared);
  void (*apply)(plumb_numerics& numerics);
  std::string word() const { return fmt::format("{}={}", member, value); }
};

template <auto member, auto value>
constexpr WeakerPromise above(std::string_view name, std::string_view word) {
  return {name, word, [](const plumb_numerics& n) { return n.*member < value; },
          [](plumb_numerics& n) { n.*member = value; }};
}
template <auto member, auto value>
constexpr WeakerPromise below(std::string_view name, std::string_view word) {
  return {name, word, [](const plumb_numerics& n) { return n.*member > value; },
          [](plumb_numerics& n) { n.*member = value; }};
}

using N = plumb_numerics;
constexpr std::array kWeakerPromises{
    above<&N::product, PLUMB_F32>("product", "f32"),
    above<&N::product, PLUMB_TF32>("product", "tf32"),
    above<&N::product, PLUMB_TF32_TRUNCATED>("product", "tf32_truncated"),
    above<&N::product, PLUMB_BF16>("product", "bf16"),
    above<&N::accumulator, PLUMB_F32>("accumulator", "f32"),
    above<&N::sum_unit, PLUMB_UNIT_SM90_BF16>("sum_unit", "sm90_bf16"),
    below<&N::chains, 1>("chains", "1"),
    above<&N::probability, PLUMB_F32>("probability", "f32"),
    above<&N::probability, PLUMB_BF16>("probability", "bf16"),
    above<&N::score, PLUMB_BF16>("score", "bf16"),
    above<&N::function_ulp, 4.0F>("function_ulp", "4"),
    below<&N::stores_partials, 0>("stores_partials", "0"),
    below<&N::index_order, PLUMB_INDICES_OWN_ORDER>("index_order", "own"),
    below<&N::index_order, PLUMB_INDICES_ANY_ORDER>("index_order", "any"),
    below<&N::equal_keys, PLUMB_EQUAL_KEYS_REPEATED>("equal_keys", "repeated"),
    below<&N::equal_keys, PLUMB_EQUAL_KEYS_ANY>("equal_keys", "any"),
    below<&N::deterministic, 0>("deterministic", "0")};

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string joined(std::string_view words, const std::string& word) {
  return words.empty() ? word : fmt::format("{} {}", words, word);
}

std::size_t count_words(std::string_view words) { return words_of(words).size(); }

// All combinations of choice values. A choice that keeps the row's own value is not named in the
// combination.
std::vector<std::string> contracts(const OpDefinition& op, const Row& row) {
  std::vector<std::string> all{""};
  for (const ContractChoice& choice : op.choices) {
    const std::string_view named = row.word(choice.name);
    const std::string_view own = named.empty() ? choice.values.front() : named;
    const std::vector<std::string> before = all;
    for (const std::string_view value : choice.values) {
      if (value == own) continue;
      for (const std::string& other : before) {
        all.push_back(joined(other, fmt::format("{}={}", choice.name, value)));
      }
    }
  }
  sort_by(all, count_words);
  if (all.size() > kMostContracts) all.resize(kMostContracts);
  return all;
}

class AlternativeSearch {
 public:
  AlternativeSearch(std::vector<WeakerPromise> weaker, const IsRight& is_right)
      : weaker_(std::move(weaker)), is_right_(is_right) {}

  // Tries other contracts first. Weaker numerics are tried only if no contract is right, because
  // wider bounds would also cover a wrong choice.
  void look_at(const std::vector<std::string>& contracts) {
    for (const std::string& contract : contracts) {
      if (!contract.empty()) try_one({contract, ""});
    }
    if (!right.empty() || weaker_.empty()) return;
    for (const std::string& contract : contracts) {
      if (count_words(contract) <= 1) weaken(contract);
    }
  }

  std::vector<Alternative> right;

 private:
  bool try_one(const Alternative& one) {
    if (!is_right_(one)) return false;
    right.push_back(one);
    return true;
  }

  void weaken(const std::string& contract) {
    if (!is_right_({contract, weakest()})) return;
    if (!look_at_single(contract) && contract.empty()) look_at_pairs();
  }

  // The weakest value of every member together. If these numerics do not make the case pass, none
  // do.
  std::string weakest() const {
    std::string words;
    for (std::size_t i = 0; i < weaker_.size(); ++i) {
      const bool last = i + 1 == weaker_.size() || weaker_[i + 1].member != weaker_[i].member;
      if (last) words = joined(words, weaker_[i].word());
    }
    return words;
  }

  bool look_at_single(const std::string& contract) {
    std::string_view found;
    for (const WeakerPromise& promise : weaker_) {
      if (promise.member == found) continue;
      if (try_one({contract, promise.word()})) found = promise.member;
    }
    return !found.empty();
  }

  void look_at_pairs() {
    for (std::size_t i = 0; i < weaker_.size(); ++i) {
      for (std::size_t j = i + 1; j < weaker_.size(); ++j) {
        if (weaker_[i].member == weaker_[j].member) continue;
        if (try_one({"", joined(weaker_[i].word(), weaker_[j].word())})) return;
      }
    }
  }

  const std::vector<WeakerPromise> weaker_;
  const IsRight& is_right_;
};

std::vector<Alternative> search(const OpDefinition& op, const Row& row,
                                std::vector<WeakerPromise> weaker, const IsRight& is_right) {
  AlternativeSearch search(std::move(weaker), is_right);
  search.look_at(contracts(op, row));
  return std::move(search.right);
}

// Words in a form for sentences: "floor=1e-4 ties=even" becomes "floor = 1e-4 and ties = even".
std::string in_prose(const std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    parts.push_back(word.substr(0, equals) + " = " + word.substr(equals + 1));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

// True if the change only says that the kernel computes less exactly: wider bounds cover errors
// too.
bool widens_bounds(const Alternative& one) {
  constexpr std::array<std::string_view, 7> kArithmetic = {
      "product=",     "accumulator=", "sum_unit=",    "chains=",
      "probability=", "score=",       "function_ulp="};
  const std::vector<std::string> words = words_of(one.numerics);
  return std::ranges::any_of(words, [&](const std::string& word) {
    return std::ranges::any_of(kArithmetic,
                               [&](std::string_view start) { return word.starts_with(start); });
  });
}

}  // namespace

std::size_t Alternative::changes() const { return count_words(contract) + count_words(numerics); }

std::string Alternative::text() const {
  std::vector<std::string> words = words_of(contract);
  std::ranges::copy(words_of(numerics), std::back_inserter(words));
  return in_prose(words);
}

std::string Alternative::declaration() const {
  std::string text = contract.empty() ? "" : fmt::format("contract = \"{}\"", contract);
  if (numerics.empty()) return text;
  return text + (text.empty() ? "" : " and ") + "numerics " + in_prose(words_of(numerics));
}

std::string right_if(const std::vector<Alternative>& right) {
  if (right.empty()) return "";
  const std::size_t fewest = std::ranges::min(right, {}, &Alternative::changes).changes();
  std::vector<std::string> texts;
  bool wider = false;
  for (const Alternative& one : right) {
    if (one.changes() != fewest) continue;
    texts.push_back(one.text());
    wider |= widens_bounds(one);
  }
  return fmt::format("right if {}: declare {}{}", fmt::join(texts, ", or if "),
                     fewest > 1 ? "all of it" : "it",
                     wider ? ", but only if the kernel computes that way" : "");
}

std::string passes_if(const std::vector<Alternative>& passing) {
  if (passing.empty()) return "";
  std::vector<std::string> texts;
  for (const Alternative& one : passing) texts.push_back(one.text());
  return fmt::format("declared as {} it passes, because the wrong values are then not tested",
                     fmt::join(texts, ", or as "));
}

std::vector<Alternative> single_changes(const OpDefinition& op, const Row& row) {
  std::vector<Alternative> singles;
  for (const std::string& contract : contracts(op, row)) {
    if (count_words(contract) == 1) singles.push_back({contract, ""});
  }
  return singles;
}

plumb_numerics redeclared(plumb_numerics declared, std::string_view words) {
  for (const std::string& word : words_of(words)) {
    for (const WeakerPromise& promise : kWeakerPromises) {
      if (promise.word() == word) promise.apply(declared);
    }
  }
  return declared;
}

std::vector<Alternative> right_contracts(const OpDefinition& op, const Row& row,
                                         const IsRight& is_right) {
  return search(op, row, {}, is_right);
}

std::vector<Alternative> right_alternatives(const OpDefinition& op, const Row& row,
                                            const plumb_numerics& declared,
                                            const IsRight& is_right) {
  std::vector<WeakerPromise> weaker;
  std::ranges::copy_if(kWeakerPromises, std::back_inserter(weaker),
                       [&](const WeakerPromise& promise) { return promise.weakens(declared); });
  return search(op, row, std::move(weaker), is_right);
}

}  // namespace plumb::cases
