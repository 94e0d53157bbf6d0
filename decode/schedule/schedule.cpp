// SPDX-License-Identifier: Apache-2.0
#include "decode/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <stdexcept>

#include "cases/tensors/fill.h"
#include "decode/checks/requests/model_entries.h"
#include "decode/metadata/v32_metadata.h"
#include "decode/schedule/kept_schedule.h"

namespace plumb::cases {

namespace {

using device::decode::Geometry;
using device::decode::Scheduled;

constexpr std::int64_t kShortChunk = 4;
constexpr std::int64_t kBehindBorder = 16;  // prompt tokens after a border

class Planner {
 public:
  Planner(const ScheduleShape& shape, const Geometry& geometry)
      : shape_(shape),
        geometry_(geometry),
        most_(std::min(shape.most_requests, geometry.max_requests)) {
    if (has_prompts() && geometry.max_batched_tokens == 0) {
      throw std::invalid_argument("prompts where max_batched_tokens is 0");
    }
  }

  std::vector<ScheduledStep> plan() {
    std::vector<ScheduledStep> steps;
    for (std::int64_t i = 0; i < shape_.steps; ++i) steps.push_back(step(i));
    return steps;
  }

 private:
  std::int64_t draw(std::int64_t least, std::int64_t most) {
    return integer(mix(shape_.seed, 71), draws_++, least, most);
  }

  // Context of the n-th request, with room for all steps of the schedule if possible.
  std::int64_t length(std::int64_t n) {
    const std::int64_t ratio = geometry_.index_ratio, k = ratio * geometry_.top_k;
    const std::int64_t page = geometry_.pages[0];
    const std::int64_t most = geometry_.max_context - geometry_.query_tokens();
    const std::int64_t room =
        std::max<std::int64_t>(most - shape_.steps * geometry_.query_tokens(), 0);
    const std::array<std::int64_t, 3> near_k{k - ratio, k, k + ratio};
    const std::array<std::int64_t, 6> borders{
        page - 1,         page, page + 1, std::max<std::int64_t>(geometry_.window - 1, 0),
        geometry_.window, 127};
    const std::int64_t tile = tile_of_candidates();
    const std::array<std::int64_t, 6> near_tile{
        tile - 1, tile, tile + 1, ratio * (tile - 1), ratio * tile, ratio * (tile + 1)};
    switch (shape_.lengths) {
      case Lengths::equal: return room / 2;
      case Lengths::around_k: return near_k[static_cast<std::size_t>(n % 3)];
      case Lengths::around_page: return borders[static_cast<std::size_t>(n % 6)];
      case Lengths::short_ones: return n % 6;
      case Lengths::around_tile: return near_tile[static_cast<std::size_t>(n % 6)];
      case Lengths::beyond_k:
        return std::min(k + 1 + draw(0, std::max<std::int64_t>(room - k, 1)), room);
      case Lengths::mixed: return n % 2 == 0 ? room - n % 7 : n % 7;
      case Lengths::random: return draw(0, room);
      case Lengths::across:
        return std::min(before_border(n) + (has_prompts() ? kBehindBorder : 0), room);
      case Lengths::near_blocks: return whole_blocks() - 3 - n % 2;
    }
    return 0;
  }

  // Context of the n-th request: one to three tokens before a border.
  std::int64_t before_border(std::int64_t n) const {
    const std::array<std::int64_t, 5> borders{
        geometry_.pages[0], device::decode::kC128a, tile_of_candidates(),
        geometry_.index_ratio * geometry_.top_k, std::max<std::int64_t>(geometry_.window, 4)};
    return borders[static_cast<std::size_t>(n % 5)] - 1 - n / 5 % 3;
  }

  std::int64_t tile_of_candidates() const {
    return geometry_.architecture == device::decode::Architecture::v32
               ? device::decode::kPlanGranularity
               : geometry_.plan_block;
  }

  // Number of requests in step i: one whose token count is no captured size but below the largest;
  // all such numbers in turn. The maximum if there is none.
  std::int64_t between_sizes(std::int64_t i) const {
    const auto& sizes = geometry_.capture_sizes;
    std::vector<std::int64_t> counts;
    for (std::int64_t n = 1; n <= most_; ++n) {
      const std::int64_t tokens = n * geometry_.query_tokens();
      const bool captured = std::find(sizes.begin(), sizes.end(), tokens) != sizes.end();
      if (!captured && !sizes.empty() && tokens < sizes.back()) counts.push_back(n);
    }
    return counts.empty() ? most_ : counts[static_cast<std::size_t>(i) % counts.size()];
  }

  std::int64_t batch_size(std::int64_t i) {
    switch (shape_.traffic) {
      case Traffic::grow: return std::min(i + 1, most_);
      case Traffic::shrink: return std::max(most_ - i, std::int64_t{1});
      case Traffic::there_and_back:
        return i % 2 == 0 ? most_ : std::max<std::int64_t>(most_ / 4, 1);
      case Traffic::random: return draw(1, most_);
      case Traffic::prompts: return std::min(i + 2, most_);
      case Traffic::idle: return i % 2 == 0 ? most_ : 0;
      case Traffic::between: return between_sizes(i);
      default: return most_;
    }
  }

  void finish(std::uint64_t id, ScheduledStep& step) {
    step.finished.push_back(id);
    tokens_.erase(id);
    prompts_.erase(id);
    order_.erase(std::find(order_.begin(), order_.end(), id));
  }

  // Smallest number of tokens that fills whole blocks in every cache.
  std::int64_t whole_blocks() const {
    using device::decode::Cache;
    std::int64_t tokens = 1;
    for (std::size_t cache = 0; cache < device::decode::kCaches; ++cache) {
      if (!geometry_.has(static_cast<Cache>(cache))) continue;
      tokens = std::lcm(tokens, geometry_.pages[cache] * tokens_of_entry(cache));
    }
    return tokens;
  }

  // Admits a request that shares the longest prefix of the newest request that has one; with
  // `hits`, of the oldest.
  bool admit_behind_another(ScheduledStep& step) {
    const std::int64_t whole = whole_blocks();
    std::vector<std::uint64_t> others = order_;
    if (shape_.traffic != Traffic::hits) std::ranges::reverse(others);
    for (const std::uint64_t other : others) {
      const std::int64_t tokens = tokens_[other] / whole * whole;
      if (tokens == 0) continue;
      const std::uint64_t id = ++last_id_;
      step.shared.push_back({id, other, tokens});
      tokens_[id] = tokens;
      prompts_[id] = 0;
      order_.push_back(id);
      return true;
    }
    return false;
  }

  void admit(ScheduledStep& step) {
    // A request can share only with one of an earlier step, because requests of `admitted` come
    // after those of `shared`. In three of six steps new requests share a prefix. In the other
    // three they do not, so that blocks only lose owners.
    const bool gains = step_ % 6 >= 1 && step_ % 6 <= 3;
    const bool shares = (shape_.traffic == Traffic::prefix && gains) ||
                        (shape_.traffic == Traffic::hits && step_ > 0);
    if (shares && step.admitted.empty() && admit_behind_another(step)) return;
    const std::uint64_t id = ++last_id_;
    const std::int64_t tokens = length(static_cast<std::int64_t>(id) - 1);
    // A prefix of the prompt may be in the caches already.
    const std::int64_t there = computed(tokens);
    step.admitted.emplace_back(id, there);
    tokens_[id] = there;
    prompts_[id] = tokens - there;
    order_.push_back(id);
  }

  std::int64_t computed(std::int64_t tokens) {
    if (shape_.lengths == Lengths::across && has_prompts()) {
      // So that the second of equal chunks crosses the border.
      const std::int64_t first = shape_.traffic == Traffic::chunks ? kShortChunk : 0;
      return std::max<std::int64_t>(tokens - kBehindBorder - first, 0);
    }
    if (shape_.traffic == Traffic::join) return step_ == 0 ? tokens : tokens - tokens / 8;
    return has_prompts() ? draw(0, 1) * tokens / 2 : tokens;
  }

  // Tokens of request j in step i. Steps with i % 3 == 0: different numbers of tokens. Then the
  // same numbers on other requests, so the total is unchanged. Then no request has a single token,
  // so the total changes but the longest does not.
  std::int64_t turned_query(std::int64_t i, std::int64_t j) const {
    const std::int64_t most = geometry_.query_tokens(), phase = i % 3;
    const std::int64_t tokens = 1 + (j + i / 3 + std::min<std::int64_t>(phase, 1)) % most;
    return phase == 2 && tokens == 1 ? most : tokens;
  }

  ScheduledStep same_ends(std::int64_t i) {
    ScheduledStep step;
    step.finished = order_;
    order_.clear();
    for (std::int64_t j = 0; j < most_; ++j) {
      const std::int64_t tokens = turned_query(i, j);
      const std::int64_t end = std::max(length(j), geometry_.query_tokens());
      order_.push_back(++last_id_);
      step.admitted.emplace_back(last_id_, end - tokens);
      step.batch.push_back({last_id_, tokens});
    }
    return step;
  }

  ScheduledStep step(std::int64_t i) {
    if (shape_.traffic == Traffic::same_ends) return same_ends(i);
    ScheduledStep step;
    step_ = i;
    const auto size = static_cast<std::size_t>(batch_size(i));
    const bool others = shape_.traffic == Traffic::burst && i % 3 == 0;
    const std::vector<std::uint64_t> before = order_;
    for (const std::uint64_t id : before) {
      const bool at_its_end = tokens_[id] + geometry_.query_tokens() > geometry_.max_context;
      if (others || at_its_end) finish(id, step);
    }
    const bool full = order_.size() == size;
    const bool replaces = shape_.traffic == Traffic::replace || shape_.traffic == Traffic::prefix ||
                          (one_comes_at_a_time() && full) ||
                          (shape_.traffic == Traffic::random && draw(0, 2) == 0);
    if (replaces && i > 0 && !order_.empty()) finish(order_.front(), step);
    if (shape_.traffic == Traffic::hits && full) finish(order_.back(), step);
    while (order_.size() < size) admit(step);
    if (shape_.traffic == Traffic::permute || shape_.traffic == Traffic::random) shuffle();
    fill(size, step);
    disturb(step);
    return step;
  }

  void disturb(ScheduledStep& step) {
    const std::int64_t turn = shape_.between == Between::turns ? step_ % 4 : -1;
    if (shape_.between == Between::dummies || turn == 2) {
      step.dummy_tokens = draw(1, geometry_.max_decode_tokens());
    }
    if (shape_.between == Between::captures || turn == 3) step.recapture = draw(1, 1 << 16);
  }

  bool one_comes_at_a_time() const {
    return shape_.traffic == Traffic::prompts || shape_.traffic == Traffic::join;
  }
  bool has_prompts() const {
    return one_comes_at_a_time() || shape_.traffic == Traffic::burst ||
           shape_.traffic == Traffic::chunks;
  }
  bool prompts_wait() const { return shape_.traffic == Traffic::join && step_ % 2 == 0; }

  // Adds requests that decode, then prompts, up to max_tokens.
  void fill(std::size_t size, ScheduledStep& step) {
    std::int64_t room = geometry_.max_tokens();
    for (const bool prefill : {false, true}) {
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t id = order_[i];
        if ((prompts_[id] > 0) != prefill || (prefill && prompts_wait())) continue;
        const std::int64_t tokens = prefill ? chunk(prompts_[id], room) : query_tokens();
        if (tokens == 0) continue;
        step.batch.push_back({id, tokens, prefill, prefill ? Scheduled::kAll : accepted(tokens)});
        room -= tokens;
        advance(step.batch.back());
      }
    }
  }

  // Most chunks are short, so that graphs hold the batch too. With `join`, whose batch is about as
  // large as the largest graph, they have one token. A burst has only short chunks, so that all
  // prompts fit.
  std::int64_t chunk(std::int64_t left, std::int64_t room) {
    const std::int64_t most = std::min(left, room);
    if (most == 0) return 0;
    if (shape_.traffic == Traffic::chunks) return std::min(most, kShortChunk);
    const std::int64_t few = shape_.traffic == Traffic::join ? 1 : kShortChunk;
    const bool whole = shape_.traffic != Traffic::burst && draw(0, 2) == 0;
    return whole ? most : draw(1, std::min(most, few));
  }

  std::int64_t query_tokens() {
    const std::int64_t most = geometry_.query_tokens();
    const bool uneven = shape_.traffic == Traffic::uneven || shape_.traffic == Traffic::prompts;
    return uneven ? draw(1, most) : most;
  }

  // The first token is not speculated, so it is always accepted.
  std::int64_t accepted(std::int64_t tokens) {
    switch (shape_.acceptance) {
      case Acceptance::all: break;
      case Acceptance::some: return draw(1, tokens);
      case Acceptance::none: return 1;
    }
    return Scheduled::kAll;
  }

  void advance(const Scheduled& scheduled) {
    const bool all = scheduled.accepted == Scheduled::kAll;
    tokens_[scheduled.request] += all ? scheduled.tokens : scheduled.accepted;
    if (scheduled.prefill) prompts_[scheduled.request] -= scheduled.tokens;
  }

  void shuffle() {
    for (std::size_t i = order_.size(); i > 1; --i) {
      const auto other = static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(i) - 1));
      std::swap(order_[i - 1], order_[other]);
    }
  }

  const ScheduleShape& shape_;
  const Geometry& geometry_;
  const std::int64_t most_;
  std::int64_t step_ = 0;
  std::uint64_t last_id_ = 0, draws_ = 0;
  std::map<std::uint64_t, std::int64_t> tokens_, prompts_;  // cached tokens; prompt tokens to come
  std::vector<std::uint64_t> order_;
};

}  // namespace

std::string_view name_of(Traffic traffic) {
  constexpr std::array<std::string_view, 17> kNames{
      "steady", "grow",    "shrink", "there_and_back", "permute", "replace",
      "random", "prompts", "uneven", "same_ends",      "join",    "prefix",
      "idle",   "between", "burst",  "chunks",         "hits"};
  return kNames[static_cast<std::size_t>(traffic)];
}

std::string_view name_of(Lengths lengths) {
  constexpr std::array<std::string_view, 10> kNames{
      "equal",  "around_k", "around_page", "short_ones", "mixed",
      "random", "beyond_k", "around_tile", "across",     "near_blocks"};
  return kNames[static_cast<std::size_t>(lengths)];
}

std::string text_of(const ScheduleShape& shape) {
  constexpr std::array<std::string_view, 3> kAccepted{"", ", some accepted", ", none accepted"};
  constexpr std::array<std::string_view, 4> kBetween{"", ", dummies between", ", captures between",
                                                     ", dummies and captures between"};
  const auto kept = [](const char* what, const KeepList& list) {
    return list.keeps_all() ? "" : fmt::format(", {} {} only", what, list.text());
  };
  return fmt::format("{}, {}, {} steps, {} requests, seed {}{}{}{}{}", name_of(shape.traffic),
                     name_of(shape.lengths), shape.steps, shape.most_requests, shape.seed,
                     kAccepted[static_cast<std::size_t>(shape.acceptance)],
                     kBetween[static_cast<std::size_t>(shape.between)],
                     kept("requests", shape.keep_requests), kept("steps", shape.keep_steps));
}

std::vector<ScheduledStep> make_schedule(const ScheduleShape& shape, const Geometry& geometry) {
  return kept_part(Planner(shape, geometry).plan(), shape.keep_requests, shape.keep_steps);
}

}  // namespace plumb::cases
