// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/step_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "decode/checks/requests/model_entries.h"
#include "decode/schedule/decode_step.h"

namespace plumb::cases {

namespace {

using device::decode::Cache;
using device::decode::kCaches;
using device::decode::Scheduled;
using device::decode::StepPlan;

struct FeatureWords {
  std::string_view name, deed;
};
constexpr std::array<FeatureWords, kFeatures> kWords{
    {{"shared", "shared a prefix"},
     {"refilled", "filled a window again beside shared states"},
     {"evicted", "gave back a block that left the window"},
     {"reused", "used a block of another request again"},
     {"rejected", "rejected a token"},
     {"moved", "moved a request to another row"},
     {"chunked", "attended to an earlier chunk of a prompt"},
     {"mixed", "had prompts beside requests that decode"},
     {"idle", "stood idle"}}};

std::size_t at(Feature feature) { return static_cast<std::size_t>(feature); }

std::string feature_names() {
  std::vector<std::string_view> names;
  for (const FeatureWords& one : kWords) names.push_back(one.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

FeatureCounter::FeatureCounter(const device::decode::Geometry& geometry) : geometry_(geometry) {
  for (const FeatureWords& one : kWords) counts_[std::string(one.name)] = 0;
}

void FeatureCounter::come(const ScheduledStep& scheduled, Happened& now) {
  for (const std::uint64_t id : scheduled.finished) seen_.erase(id);
  for (const SharedPrefix& one : scheduled.shared) {
    now[at(Feature::shared)] = true;
    SeenRequest to{.computed = one.tokens};
    for (int cache = 0; cache < kCaches; ++cache) {
      if (!geometry_.has(static_cast<Cache>(cache))) continue;
      to.shared[static_cast<std::size_t>(cache)] =
          one.tokens / tokens_of_entry(static_cast<std::size_t>(cache)) / geometry_.pages[cache];
    }
    const std::int64_t page = geometry_.pages[0];
    const auto first_block = [&](std::int64_t tokens) {
      return std::max<std::int64_t>(tokens - geometry_.window + 1, 0) / page;
    };
    const bool left = first_block(seen_[one.other].computed) > first_block(one.tokens);
    if (geometry_.frees_window && left) now[at(Feature::refilled)] = true;
    seen_[one.request] = to;
  }
  for (const auto& [id, tokens] : scheduled.admitted) seen_[id] = {.computed = tokens};
}

// Notes new blocks of a request, and whether another request owned them before.
void FeatureCounter::note_blocks(std::uint64_t id, const Tables& tables, Happened& now) {
  SeenRequest& seen = seen_[id];
  for (std::size_t cache = 0; cache < kCaches; ++cache) {
    // Blocks of partial states always come and go.
    if (cache > 0 && geometry_.frees(static_cast<Cache>(cache))) continue;
    const auto &table = tables[cache], &before = seen.tables[cache];
    for (std::size_t i = 0; i < table.size(); ++i) {
      const std::int32_t old = i < before.size() ? before[i] : 0;
      if (old != 0 && table[i] == 0) now[at(Feature::evicted)] = true;
      if (table[i] == 0 || table[i] == old) continue;
      const auto [owner, fresh] = owners_[cache].try_emplace(table[i], id);
      const bool shared = static_cast<std::int64_t>(i) < seen.shared[cache];
      if (!fresh && owner->second != id && !shared) now[at(Feature::reused)] = true;
      owner->second = id;
    }
  }
  seen.tables = tables;
}

void FeatureCounter::note_row(const Scheduled& one, std::int64_t row, Happened& now) {
  SeenRequest& seen = seen_[one.request];
  const bool rejects = one.accepted != Scheduled::kAll && one.accepted < one.tokens;
  if (rejects) now[at(Feature::rejected)] = true;
  if (seen.row >= 0 && seen.row != row) now[at(Feature::moved)] = true;
  if (one.prefill && seen.prefilled > 0) now[at(Feature::chunked)] = true;
  seen.row = row;
  seen.computed += rejects ? one.accepted : one.tokens;
  if (one.prefill) seen.prefilled += one.tokens;
}

void FeatureCounter::note(const ScheduledStep& scheduled, const StepPlan& plan) {
  Happened now{};
  come(scheduled, now);
  for (std::size_t row = 0; row < scheduled.batch.size(); ++row) {
    const Scheduled& one = scheduled.batch[row];
    Tables tables;
    for (std::size_t cache = 0; cache < kCaches; ++cache) {
      const auto width = geometry_.blocks_per_request(static_cast<Cache>(cache));
      const auto first =
          plan.block_tables[cache].begin() + static_cast<std::ptrdiff_t>(row) * width;
      tables[cache].assign(first, first + width);
    }
    note_blocks(one.request, tables, now);
    note_row(one, static_cast<std::int64_t>(row), now);
  }
  const auto prompts =
      std::ranges::count_if(scheduled.batch, [](const Scheduled& one) { return one.prefill; });
  now[at(Feature::mixed)] = prompts > 0 && prompts < std::ssize(scheduled.batch);
  now[at(Feature::idle)] = scheduled.batch.empty();
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i]) ++counts_[std::string(kWords[i].name)];
  }
}

std::vector<std::string> missing_features(const Row& row, const FeatureCounts& counts) {
  std::vector<std::string> missing;
  std::istringstream names{std::string(row.word(kNamedFor))};
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = std::ranges::find(kWords, name, &FeatureWords::name);
    if (found == kWords.end()) {
      throw BadRow(
          fmt::format("{}: named_for has no \"{}\"; it has {}", row.where, name, feature_names()));
    }
    const auto count = counts.find(name);
    if (count != counts.end() && count->second > 0) continue;
    missing.push_back(fmt::format("{}/{} never {}", kDecodeStep, row.name, found->deed));
  }
  return missing;
}

}  // namespace plumb::cases
