// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/requests/request_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/tensors/fill.h"
#include "decode/checks/requests/model_entries.h"

namespace plumb::cases {

using device::decode::Cache;
using device::decode::Scheduled;

RequestModel::RequestModel(const device::decode::Geometry& geometry) : geometry_(geometry) {
  for (std::size_t cache = 0; cache < kKinds; ++cache) {
    const auto kind = static_cast<Cache>(cache);
    if (!geometry.has(kind)) continue;
    tags_[cache].resize(static_cast<std::size_t>(geometry.blocks(kind) * geometry.pages[cache]));
  }
}

// Extends the tokens of a request to `end`. Tokens after the computed ones are made anew, because
// other tokens follow a rejection.
void RequestModel::grow(Story& story, std::int64_t end) {
  story.tokens.resize(static_cast<std::size_t>(story.computed));
  story.digests.resize(static_cast<std::size_t>(story.computed));
  for (std::int64_t i = story.computed; i < end; ++i) {
    const std::int64_t key = token_key(story.id, i, story.rejections);
    const std::uint64_t before = i == 0 ? 1 : story.digests.back();
    story.tokens.push_back(key);
    story.digests.push_back(mix(before, static_cast<std::uint64_t>(key)) | 1);
  }
}

void RequestModel::come_behind(const SharedPrefix& one) {
  const Story& from = stories_.at(one.other);
  Story to{.id = one.request, .computed = one.tokens, .prefix = one.tokens, .behind = one.other};
  to.tokens.assign(from.tokens.begin(), from.tokens.begin() + one.tokens);
  to.digests.assign(from.digests.begin(), from.digests.begin() + one.tokens);
  for (std::size_t cache = 0; cache < kKinds; ++cache) {
    if (!geometry_.has(static_cast<Cache>(cache))) continue;
    const auto entries =
        std::min(one.tokens / tokens_of_entry(cache), std::ssize(from.places[cache]));
    to.places[cache].assign(from.places[cache].begin(), from.places[cache].begin() + entries);
    if (!geometry_.frees(static_cast<Cache>(cache))) continue;
    // The other request may have given back blocks before its window.
    const std::int64_t page = geometry_.pages[cache], seen = first_seen(from, cache) / page * page;
    std::fill_n(to.places[cache].begin(), std::min(seen, entries), -1);
  }
  stories_[one.request] = std::move(to);
}

// Applies a fill: the next part of a prompt, or entries of a shared prefix that are computed again.
std::optional<WrongPlan> RequestModel::fill(const CacheFill& one) {
  const auto found = stories_.find(one.request);
  if (found == stories_.end() || one.plan.positions.empty()) {
    return WrongPlan{
        "prompt",
        fmt::format("caches of request {} are filled, although this request did not arrive",
                    one.request)};
  }
  Story& story = found->second;
  const bool again = story.behind != 0;
  const std::int64_t first = again ? one.plan.positions.front() : story.computed;
  const std::int64_t end = first + one.plan.live_tokens;
  if (again && (first < 0 || end > story.prefix)) {
    return WrongPlan{"prefix hit", fmt::format("positions {} to {} of request {} are filled again, "
                                               "of a prefix of {} tokens",
                                               first, end - 1, story.id, story.prefix)};
  }
  if (!again) grow(story, end);
  const Rows rows{
      {.story = &story, .first = first, .tokens = end - first, .prefill = true, .fills = true}};
  auto wrong = check_rows(rows, one.plan);
  if (!wrong) wrong = check_writes(rows, one.plan);
  if (!again) story.computed = end;
  return wrong;
}

std::optional<WrongPlan> RequestModel::check_filled(const ScheduledStep& scheduled) const {
  for (const auto& [id, tokens] : scheduled.admitted) {
    const std::int64_t computed = stories_.at(id).computed;
    if (computed == tokens) continue;
    return WrongPlan{"prompt", fmt::format("{} tokens of request {} are filled, expected {}",
                                           computed, id, tokens)};
  }
  return std::nullopt;
}

std::optional<WrongPlan> RequestModel::change(const ScheduledStep& scheduled,
                                              const std::vector<CacheFill>& fills) {
  for (const std::uint64_t id : scheduled.finished) stories_.erase(id);
  for (const SharedPrefix& one : scheduled.shared) come_behind(one);
  for (const auto& [id, tokens] : scheduled.admitted) stories_[id] = {.id = id};
  for (const CacheFill& one : fills) {
    if (auto wrong = fill(one)) return wrong;
  }
  return check_filled(scheduled);
}

std::optional<WrongPlan> RequestModel::check(const ScheduledStep& scheduled, const StepPlan& plan) {
  Rows rows;
  std::int64_t token = 0;
  for (const Scheduled& one : scheduled.batch) {
    Story& story = stories_.at(one.request);
    grow(story, story.computed + one.tokens);
    rows.push_back({.story = &story,
                    .row = std::ssize(rows),
                    .first_token = token,
                    .first = story.computed,
                    .tokens = one.tokens,
                    .prefill = one.prefill});
    token += one.tokens;
  }
  auto wrong = check_rows(rows, plan);
  if (!wrong) wrong = check_packed(rows, plan);
  if (!wrong) wrong = check_prefills(rows, plan);
  if (!wrong) wrong = check_reads(rows, plan);
  if (!wrong) wrong = check_writes(rows, plan);
  accept(scheduled);
  return wrong;
}

void RequestModel::accept(const ScheduledStep& scheduled) {
  for (const Scheduled& one : scheduled.batch) {
    Story& story = stories_.at(one.request);
    const std::int64_t accepted = one.accepted == Scheduled::kAll ? one.tokens : one.accepted;
    story.planned_end = story.end();
    story.computed += accepted;
    if (accepted < one.tokens) ++story.rejections;
    story.is_new = false;
    grow(story, story.computed);
  }
}

// Token count of each request in a step, including the step's own tokens.
std::map<std::uint64_t, std::int64_t> RequestModel::ends_in(const ScheduledStep& scheduled) const {
  std::map<std::uint64_t, std::int64_t> ends;
  for (const auto& [id, story] : stories_) ends[id] = story.computed;
  for (const std::uint64_t id : scheduled.finished) ends.erase(id);
  for (const SharedPrefix& one : scheduled.shared) ends[one.request] = one.tokens;
  for (const auto& [id, tokens] : scheduled.admitted) ends[id] = tokens;
  for (const Scheduled& one : scheduled.batch) ends[one.request] += one.tokens;
  return ends;
}

// No blocks are shared, and only requests that had a step before have given back window blocks. Of
// partial states a request holds at most its window in front of a step, and the tokens of one step
// more while its prompt is filled.
std::int64_t RequestModel::needed_blocks(std::uint64_t request, std::int64_t end,
                                         std::size_t cache) const {
  const std::int64_t page = geometry_.pages[cache];
  const std::int64_t blocks = (end / tokens_of_entry(cache) + page - 1) / page;
  const auto story = stories_.find(request);
  if (cache > 0 && geometry_.frees(static_cast<Cache>(cache))) {
    using namespace device::decode;
    const std::int64_t window =
        cache == static_cast<std::size_t>(Cache::c4a_partial) ? kC4aWindow : kC128aWindow;
    const std::int64_t computed = story == stories_.end() ? end : story->second.computed;
    const std::int64_t held = end - std::max<std::int64_t>(computed - window + 1, 0);
    return std::min(blocks, (held + page - 2) / page + 1);
  }
  const bool frees = cache == 0 && geometry_.frees_window && story != stories_.end();
  return blocks - (frees ? first_seen(story->second, cache) / page : 0);
}

// An error only if the upper bound of the blocks that a right host needs is below that of the
// cache.
std::optional<WrongPlan> RequestModel::check_shortage(const ScheduledStep& scheduled) const {
  const auto ends = ends_in(scheduled);
  for (std::size_t cache = 0; cache < kKinds; ++cache) {
    const auto kind = static_cast<Cache>(cache);
    if (!geometry_.has(kind)) continue;
    std::int64_t needed = 1;  // block 0, which no request owns
    for (const auto& [id, end] : ends) needed += needed_blocks(id, end, cache);
    // A prompt is filled by as many tokens at a time as a step has.
    const bool fills = !scheduled.admitted.empty() || !scheduled.shared.empty();
    if (cache > 0 && geometry_.frees(kind) && fills) {
      needed += geometry_.max_tokens() / geometry_.pages[cache] + 1;
    }
    if (needed > geometry_.blocks(kind)) return std::nullopt;
  }
  return WrongPlan{"block release",
                   fmt::format("no block is free, although there are enough for the {} requests: "
                               "blocks were not given back",
                               ends.size())};
}

}  // namespace plumb::cases
