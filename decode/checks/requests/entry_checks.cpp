// SPDX-License-Identifier: Apache-2.0
//
// Checks the cache slots that a plan reads and writes. The model of requests keeps a tag for each
// slot: the entry that was written there last.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "decode/checks/requests/model_entries.h"
#include "decode/checks/requests/request_model.h"

namespace plumb::cases {

using device::decode::Cache;
using device::decode::StepPlan;

namespace {

std::string content(const EntryTag& tag, std::size_t cache) {
  return tag.digest == 0 ? "nothing" : name_of_entry(tag.request, cache, tag.number);
}

}  // namespace

std::int64_t RequestModel::in_table(const StepPlan& plan, std::int64_t row, std::size_t cache,
                                    std::int64_t number) const {
  const std::int64_t page = geometry_.pages[cache];
  const auto width = geometry_.blocks_per_request(static_cast<Cache>(cache));
  const auto at = static_cast<std::size_t>(row * width + number / page);
  return plan.block_tables[cache].at(at) * page + number % page;
}

std::uint64_t RequestModel::digest_of(const Story& story, std::size_t cache,
                                      std::int64_t number) const {
  const std::int64_t last = (number + 1) * tokens_of_entry(cache) - 1;
  return last < story.end() ? story.digests[static_cast<std::size_t>(last)] : 0;
}

// First entry of a cache that later tokens read: the start of the window, 0 for compressed states.
// The next compressed state is made of the partial states of the next token's group, and with C4A
// also of those of the group before.
std::int64_t RequestModel::first_seen(const Story& story, std::size_t cache) const {
  using namespace device::decode;
  const auto group = [&](std::int64_t tokens) { return story.computed / tokens * tokens; };
  switch (static_cast<Cache>(cache)) {
    case Cache::window:
      return geometry_.window == 0
                 ? 0
                 : std::max<std::int64_t>(story.computed - geometry_.window + 1, 0);
    case Cache::c4a_partial: return std::max<std::int64_t>(group(kC4a) - kC4a, 0);
    case Cache::c128a_partial: return group(kC128a);
    default: return 0;
  }
}

const EntryTag& RequestModel::tag(std::size_t cache, std::int64_t slot) const {
  static const EntryTag kNothing;
  const bool is_there = slot >= 0 && slot < std::ssize(tags_[cache]);
  return is_there ? tags_[cache][static_cast<std::size_t>(slot)] : kNothing;
}

// Checks the slots of entries of earlier steps that the rows' tokens attend or compress.
std::optional<WrongPlan> RequestModel::check_reads(const Rows& rows, const StepPlan& plan) const {
  for (const PlanRow& row : rows) {
    for (std::size_t cache = 0; cache < kKinds; ++cache) {
      if (!geometry_.has(static_cast<Cache>(cache))) continue;
      const std::int64_t end = row.first / tokens_of_entry(cache);
      for (std::int64_t i = first_seen(*row.story, cache); i < end; ++i) {
        const std::int64_t slot = in_table(plan, row.row, cache, i);
        if (auto wrong = check_read(row, cache, i, slot)) return wrong;
      }
    }
  }
  return std::nullopt;
}

std::optional<WrongPlan> RequestModel::check_read(const PlanRow& row, std::size_t cache,
                                                  std::int64_t number, std::int64_t slot) const {
  const Story& story = *row.story;
  const std::uint64_t right = digest_of(story, cache, number);
  if (tag(cache, slot).digest == right) return std::nullopt;
  const auto& places = story.places[cache];
  const std::int64_t place =
      number < std::ssize(places) ? places[static_cast<std::size_t>(number)] : -1;
  const std::string entry =
      fmt::format("{} (row {})", name_of_entry(story.id, cache, number), row.row);
  const std::string read =
      fmt::format("the call reads slot {}, which holds {}", slot, content(tag(cache, slot), cache));
  if (place < 0) {
    const std::string behind =
        story.behind == 0 ? ""
                          : fmt::format(" after it took its prefix from request {}", story.behind);
    return WrongPlan{story.behind == 0 ? "prompt" : "prefix hit",
                     fmt::format("{} was not written{}; {}", entry, behind, read)};
  }
  if (geometry_.frees(static_cast<Cache>(cache)) && slot < geometry_.pages[cache]) {
    return WrongPlan{
        "block release",
        fmt::format("the block of {} was given back, although the window still needs it", entry)};
  }
  if (tag(cache, place).digest == right) {
    return WrongPlan{"block_tables", fmt::format("{} lies in slot {}; {}", entry, place, read)};
  }
  return WrongPlan{"block release",
                   fmt::format("{} was overwritten in slot {}; {}", entry, place, read)};
}

// Checks the slots to which tokens write their entries and the compressed states that they
// complete.
std::optional<WrongPlan> RequestModel::check_writes(const Rows& rows, const StepPlan& plan) {
  for (const PlanRow& row : rows) {
    for (std::int64_t i = 0; i < row.tokens; ++i) {
      const auto token = static_cast<std::size_t>(row.first_token + i);
      for (std::size_t cache = 0; cache < kKinds; ++cache) {
        if (!geometry_.has(static_cast<Cache>(cache))) continue;
        if (auto wrong = check_token_write(row, row.first + i, token, cache, plan)) return wrong;
      }
    }
  }
  return std::nullopt;
}

std::optional<WrongPlan> RequestModel::check_token_write(const PlanRow& row, std::int64_t position,
                                                         std::size_t token, std::size_t cache,
                                                         const StepPlan& plan) {
  const std::int64_t number = position / tokens_of_entry(cache);
  if ((position + 1) % tokens_of_entry(cache) != 0) return std::nullopt;
  // The device takes the slot of a compressed state from the block table.
  const std::int64_t in_its_table = in_table(plan, row.row, cache, number);
  const std::int64_t slot =
      is_compressed(cache) ? in_its_table : plan.slot_mapping[cache].at(token);
  // An entry of a shared prefix exists already. A host that computes other entries of the prefix
  // again may skip the write.
  const bool is_there = row.end() <= row.story->computed;
  if (is_there && (slot == -1 || is_compressed(cache))) return std::nullopt;
  const NewEntry entry{row, cache, number, slot, in_its_table};
  if (auto wrong = check_write(entry)) return wrong;
  write(entry);
  return std::nullopt;
}

void RequestModel::write(const NewEntry& entry) {
  Story& story = *entry.row.story;
  auto& places = story.places[entry.cache];
  const auto number = static_cast<std::size_t>(entry.number);
  if (number >= places.size()) places.resize(number + 1, -1);
  places[number] = entry.slot;
  EntryTag& there = tags_[entry.cache].at(static_cast<std::size_t>(entry.slot));
  const EntryTag comes{digest_of(story, entry.cache, entry.number), story.id, entry.number};
  const char* const fill = story.behind != 0 ? "prefix hit" : "prompt";
  writes_.push_back({.cache = entry.cache,
                     .slot = entry.slot,
                     .before = std::exchange(there, comes),
                     .after = comes,
                     .part = entry.row.fills ? fill : "cache write"});
}

std::vector<TagWrite> RequestModel::take_writes() {
  std::vector<TagWrite> writes = std::exchange(writes_, {});
  std::erase_if(writes, [&](const TagWrite& one) {
    const auto story = stories_.find(one.after.request);
    return story == stories_.end() || one.after.number < first_seen(story->second, one.cache);
  });
  return writes;
}

std::int64_t RequestModel::block_beside(const Story& story, std::size_t cache,
                                        std::int64_t number) const {
  const std::int64_t page = geometry_.pages[cache];
  const auto& places = story.places[cache];
  for (std::int64_t i = std::min(number, std::ssize(places)); i-- > number / page * page;) {
    const std::int64_t place = places[static_cast<std::size_t>(i)];
    if (place >= 0) return place / page;
  }
  return -1;
}

const RequestModel::Story* RequestModel::needed_by(const NewEntry& entry) const {
  const EntryTag& there = tag(entry.cache, entry.slot);
  const std::uint64_t comes = digest_of(*entry.row.story, entry.cache, entry.number);
  if (there.digest == 0 || there.digest == comes) return nullptr;
  for (const auto& [id, story] : stories_) {
    const auto& places = story.places[entry.cache];
    const bool is_its = there.number < std::ssize(places) &&
                        places[static_cast<std::size_t>(there.number)] == entry.slot &&
                        digest_of(story, entry.cache, there.number) == there.digest;
    if (is_its && there.number >= first_seen(story, entry.cache)) return &story;
  }
  return nullptr;
}

std::optional<WrongPlan> RequestModel::check_write(const NewEntry& entry) const {
  const Story& story = *entry.row.story;
  const std::int64_t page = geometry_.pages[entry.cache];
  const std::string name =
      fmt::format("{} (row {})", name_of_entry(story.id, entry.cache, entry.number), entry.row.row);
  const Story* const other = needed_by(entry);
  if (entry.slot != entry.in_table) {
    const std::int64_t beside = block_beside(story, entry.cache, entry.number);
    const bool is_right = beside >= 0 && entry.slot == beside * page + entry.number % page;
    const bool table = is_right || (beside < 0 && other == nullptr && entry.in_table < page);
    return WrongPlan{table ? "block_tables" : "slot_mapping",
                     fmt::format("{} is written to slot {}, but the block table gives slot {}",
                                 name, entry.slot, entry.in_table)};
  }
  if (entry.slot < page || entry.slot >= std::ssize(tags_[entry.cache])) {
    return WrongPlan{
        "block_tables",
        fmt::format("{} is written to slot {}, which belongs to no request", name, entry.slot)};
  }
  if (other == nullptr) return std::nullopt;
  const std::int64_t behind = story.prefix / tokens_of_entry(entry.cache);
  const bool shared_too_much = story.behind != 0 && entry.number / page == behind / page &&
                               tag(entry.cache, entry.slot).number == entry.number;
  return WrongPlan{
      shared_too_much ? "prefix hit" : "block release",
      fmt::format(
          "{} is written to slot {}, where request {} still needs {}{}", name, entry.slot,
          other->id, content(tag(entry.cache, entry.slot), entry.cache),
          shared_too_much
              ? fmt::format(": the block after the prefix of {} tokens is shared", story.prefix)
              : "")};
}

}  // namespace plumb::cases
