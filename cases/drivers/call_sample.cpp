// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/call_sample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "cases/drivers/run.h"
#include "cases/tables/registry.h"
#include "cases/tensors/fill.h"
#include "cases/tensors/row_axis.h"

namespace plumb::cases {

namespace {

using Rows = std::vector<std::int64_t>;

// A sample has at least this many rows, even if they exceed the budget: fewer show too little.
constexpr std::int64_t kLeastRows = 16;

// The parameter that counts the rows of an op. Cases of fp8_paged_mqa_logits are never judged on a
// sample of their requests (tiled_problem.h), so the op's definition has no row_count.
std::string_view row_parameter(const OpDefinition& op) {
  return op.name == "fp8_paged_mqa_logits" ? "requests" : op.row_count;
}

// The parameter that says how many entries a block of the written cache has.
std::string_view page_parameter(const RecordedCall& call) {
  return call.row.integers.contains("page") ? "page" : "state_rows";
}

// True for an op that writes entries of a paged cache for its tokens. It reads the inputs of a
// token and tensors that are not written, such as other caches.
bool writes_cache(const RecordedCall& call) {
  return call.tensors.contains("cache_before") && call.row.integers.contains(page_parameter(call));
}

// Copies the index lists of the chosen rows and packs them one after another. The lists are ragged,
// so a row has no fixed position in the tensor.
void copy_ragged(const TensorSet& tensors, const std::string& side, const Rows& rows,
                 TensorSet& excerpt) {
  const HostTensor& whole = tensors.at(side + "_indices");
  HostTensor& some = excerpt.at(side + "_indices");
  const auto* starts = tensors.at(side + "_indptr").data<std::int32_t>();
  auto* indptr = excerpt.at(side + "_indptr").data<std::int32_t>();
  std::int64_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t begin = std::clamp<std::int64_t>(starts[rows[i]], 0, whole.elements());
    const std::int64_t end = std::clamp<std::int64_t>(starts[rows[i] + 1], begin, whole.elements());
    const std::int64_t count = std::min(end - begin, some.elements() - at);
    std::copy_n(whole.data<std::int32_t>() + begin, count, some.data<std::int32_t>() + at);
    indptr[i] = static_cast<std::int32_t>(at);
    indptr[i + 1] = static_cast<std::int32_t>(at += count);
  }
}

bool is_ragged(const TensorSet& tensors, const std::string& name) {
  const std::string side = name.substr(0, name.rfind('_'));
  return tensors.contains(side + "_indptr") &&
         (name == side + "_indices" || name == side + "_indptr");
}

std::unique_ptr<Problem> make_few(const RecordedCall& call, std::string_view parameter,
                                  std::int64_t rows) {
  Row row = call.row;
  row.picked_from = row.integer(parameter);
  row.integers.find(parameter)->second = rows;
  return find_op(row.op).make_problem(row, call.properties);
}

Expectations expect_rows(const RecordedCall& call, std::string_view parameter, const Rows& rows) {
  const std::int64_t count = call.row.integer(parameter);
  const std::unique_ptr<Problem> few = make_few(call, parameter, std::ssize(rows));
  const TensorSet excerpt =
      excerpt_of(few->make_tensors(), call.problem.make_tensors(), call.tensors, count, rows);
  const plumb_numerics& declared = call.declared;
  const reference::Numerics numerics = to_reference(declared);
  Expectations all =
      call.problem.expect_whole(recorded_step(call.problem), call.tensors, numerics, declared);
  append(few->expect_sample(recorded_step(*few), excerpt, numerics, declared), all);
  return all;
}

// The cache blocks that the chosen tokens write, and block 0, which no request owns. `tokens` has
// every token of the call that writes one of these blocks, so that the excerpt can check the
// unwritten rest of each block for changes.
struct WrittenBlocks {
  std::map<std::int64_t, std::int64_t> places;  // block number -> its place in the excerpt
  Rows tokens;
};

WrittenBlocks blocks_of(const Rows& chosen, const std::int64_t* slots, std::int64_t tokens,
                        std::int64_t page) {
  WrittenBlocks written;
  written.places[0] = 0;
  for (const std::int64_t token : chosen) {
    if (slots[token] >= 0) written.places[slots[token] / page] = 0;
  }
  std::int64_t place = 0;
  for (auto& [block, at] : written.places) at = place++;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const bool there = slots[token] >= 0 && written.places.contains(slots[token] / page);
    if (there || (slots[token] < 0 && std::binary_search(chosen.begin(), chosen.end(), token))) {
      written.tokens.push_back(token);
    }
  }
  return written;
}

// Expectations of the whole cache blocks that the chosen tokens write. The excerpt renumbers these
// blocks.
Expectations expect_written(const RecordedCall& call, const Rows& chosen) {
  const std::int64_t page = call.row.integer(page_parameter(call));
  const std::int64_t tokens = call.row.integer("tokens");
  const auto* slots = call.tensors.at("slot_mapping").data<std::int64_t>();
  const WrittenBlocks written = blocks_of(chosen, slots, tokens, page);
  Row row = call.row;
  row.integers.find("blocks")->second = std::ssize(written.places);
  const RecordedCall compact{row, call.properties, call.problem, call.declared, call.tensors};
  const std::unique_ptr<Problem> few = make_few(compact, "tokens", std::ssize(written.tokens));
  TensorSet excerpt = few->make_tensors();
  for (HostTensor& tensor : excerpt.all()) {
    const std::string& name = tensor.spec().name;
    const HostTensor& all = call.tensors.at(name);
    if (name == "block_table") {
      tensor = all.alias();  // rows of requests, which token_to_req names
    } else if (name == "cache" || name == "cache_before") {
      for (const auto& [block, place] : written.places) {
        if (block >= all.spec().shape.front()) throw BadRow("a slot behind the end of the cache");
        std::memcpy(tensor.row<std::byte>(place), all.row<std::byte>(block),
                    static_cast<std::size_t>(all.columns()));
      }
    } else if (const auto axis =
                   find_row_axis(all.spec(), tokens, tensor.spec(), std::ssize(written.tokens))) {
      copy_rows(all, tensor, *axis, written.tokens);
    } else {
      // One tensor for all tokens, or every token was chosen. The slots are renumbered below.
      tensor = name == "slot_mapping" ? HostTensor(all) : all.alias();
    }
  }
  auto* mapping = excerpt.at("slot_mapping").data<std::int64_t>();
  for (std::size_t i = 0; i < written.tokens.size(); ++i) {
    if (mapping[i] >= 0) {
      mapping[i] = written.places.at(mapping[i] / page) * page + mapping[i] % page;
    }
  }
  const plumb_numerics& declared = call.declared;
  return few->expect(recorded_step(*few), excerpt, to_reference(declared), declared);
}

}  // namespace

std::vector<std::int64_t> choose_rows(const RowChoice& choice, std::int64_t rows) {
  const std::int64_t boundary = choice.live * rows / std::max<std::int64_t>(choice.tokens, 1);
  std::set<std::int64_t> chosen;
  for (const std::int64_t row : {std::int64_t{0}, rows - 1, boundary - 1, boundary}) {
    if (row >= 0 && row < rows) chosen.insert(row);
  }
  const std::int64_t most = std::min(choice.most, rows);
  for (std::uint64_t draw = 0; std::ssize(chosen) < most; ++draw) {
    chosen.insert(integer(choice.seed, draw, 0, rows - 1));
  }
  return {chosen.begin(), chosen.end()};
}

TensorSet excerpt_of(const TensorSet& layout, const TensorSet& whole, const TensorSet& tensors,
                     std::int64_t count, const std::vector<std::int64_t>& rows) {
  TensorSet excerpt;
  for (const HostTensor& few : layout.all()) {
    const TensorSpec& spec = few.spec();
    const HostTensor& all = tensors.at(spec.name);
    if (all.spec().shape != whole.at(spec.name).spec().shape || is_ragged(tensors, spec.name)) {
      // A table with its recorded length is shared; ragged lists are copied below.
      excerpt.add(is_ragged(tensors, spec.name) ? HostTensor(spec) : all.alias());
      continue;
    }
    const bool between = spec.role == Role::scratch || spec.role == Role::state;
    std::optional<RowAxis> axis;
    try {
      axis = find_row_axis(all.spec(), count, spec, std::ssize(rows));
    } catch (const std::logic_error&) {
      if (!between) throw;
      excerpt.add(spec);
      continue;
    }
    if (!axis) {
      excerpt.add(all.alias());
      continue;
    }
    copy_rows(all, excerpt.add(excerpt_spec(all.spec(), spec, *axis, rows)), *axis, rows);
  }
  for (const HostTensor& few : layout.all()) {
    const std::string& name = few.spec().name;
    if (is_ragged(tensors, name) && name.ends_with("_indices")) {
      copy_ragged(tensors, name.substr(0, name.rfind('_')), rows, excerpt);
    }
  }
  return excerpt;
}

Step recorded_step(const Problem& problem) {
  return {0, problem.capacity(), Fill::real, DeadRows::foreign};
}

std::int64_t independent_rows(const RecordedCall& call) {
  if (writes_cache(call)) return call.row.integer("tokens");
  const bool ragged = std::ranges::any_of(call.tensors.all(), [&](const HostTensor& tensor) {
    return is_ragged(call.tensors, tensor.spec().name);
  });
  if (!call.problem.rows_have_places() && !ragged) return 0;
  const std::string_view parameter = row_parameter(find_op(call.row.op));
  return parameter.empty() ? 0 : call.row.integer(parameter);
}

std::optional<Expectations> expect_sample(const RecordedCall& call, const RowChoice& choice) {
  const std::int64_t rows = independent_rows(call);
  if (writes_cache(call)) return expect_written(call, choose_rows(choice, rows));
  if (rows <= choice.most) return std::nullopt;
  return expect_rows(call, row_parameter(find_op(call.row.op)), choose_rows(choice, rows));
}

NeededPlaces needed_places(const RecordedCall& call, const RowChoice& choice) {
  NeededPlaces needed;
  const std::int64_t count = independent_rows(call);
  if (writes_cache(call) || !call.problem.rows_have_places() || count <= choice.most) {
    return needed;
  }
  const Rows rows = choose_rows(choice, count);
  const auto few = make_few(call, row_parameter(find_op(call.row.op)), std::ssize(rows));
  const TensorSet fewer = few->make_tensors();
  for (const HostTensor& tensor : call.tensors.all()) {
    // Integer tensors are needed in full: plans of the whole launch are computed from them.
    const TensorSpec& spec = tensor.spec();
    const bool integers = spec.dtype == Dtype::i32 || spec.dtype == Dtype::i64;
    const bool between = spec.role == Role::scratch || spec.role == Role::state;
    if (integers || between || spec.sparse || !fewer.contains(spec.name)) continue;
    const auto axis = find_row_axis(spec, count, fewer.at(spec.name).spec(), std::ssize(rows));
    if (!axis || axis->dimension != 0) continue;
    for (const std::int64_t row : rows) {
      for (std::int64_t i = 0; i < axis->per_row; ++i) {
        needed[spec.name].push_back(row * axis->per_row + i);
      }
    }
  }
  return needed;
}

std::int64_t rows_to_judge(const RecordedCall& call, const RowSampling& sampling) {
  const std::int64_t rows = independent_rows(call);
  std::int64_t most = sampling.most > 0 ? sampling.most : rows;
  if (sampling.budget > 0 && rows > 0) {
    const double share = sampling.budget / std::max(verdict_cost(call.problem), 1.0);
    const auto affordable = static_cast<std::int64_t>(share * static_cast<double>(rows));
    // Sampling more than half of the rows would save little time.
    if (share < 0.5) most = std::min(most, std::max(kLeastRows, affordable));
  }
  return most < rows ? most : 0;
}

double chance_of_missing(std::int64_t rows, std::int64_t judged) {
  if (judged >= rows) return 0;
  // The first and the last row are always judged. All others count as drawn at random, also the two
  // next to the padding, which decode steps always judge.
  const auto between = static_cast<double>(rows - 2);
  const auto random = static_cast<double>(std::max<std::int64_t>(0, judged - 2));
  const auto wrong = static_cast<double>(std::max<std::int64_t>(1, rows / 100));
  if (random + wrong > between) return 0;
  const auto choices = [](double from, double count) {
    return std::lgamma(from + 1) - std::lgamma(count + 1) - std::lgamma(from - count + 1);
  };
  return std::exp(choices(between - wrong, random) - choices(between, random));
}

}  // namespace plumb::cases
