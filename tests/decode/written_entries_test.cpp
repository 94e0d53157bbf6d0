// SPDX-License-Identifier: Apache-2.0
//
// Tests the check that a new entry of the model of requests has new bytes in every cache.
#include "decode/checks/requests/written_entries.h"

#include <gtest/gtest.h>

#include "decode/checks/cache_checks.h"

namespace plumb::tests {
namespace written_entries_test {

using cases::EntryTag;
using cases::TagWrite;
using device::decode::CacheView;

class WrittenEntries : public testing::Test {
 protected:
  WrittenEntries() : watched_(setup()), before_(cases::snapshot(watched_)), after_(before_) {}

  static cases::DecodeSetup setup() {
    cases::DecodeSetup setup;
    setup.geometry.drafter = true;
    return setup;
  }
  static TagWrite write(std::size_t cache, std::uint64_t before, std::uint64_t after) {
    return {cache, kSlot, EntryTag{before, 1, 3}, EntryTag{after, 2, 7}, "prefix hit"};
  }
  // Changes one byte of the slot in this cache.
  void change(const CacheView& cache) {
    const std::int64_t at =
        kSlot / cache.page * cache.block_bytes + kSlot % cache.page * cache.entry_bytes;
    auto& bytes = after_.at(cases::index_of_block(watched_, cache.data));
    bytes.at(static_cast<std::size_t>(at + cache.entry_bytes - 1)) ^= std::byte{1};
  }
  std::string found(const std::vector<TagWrite>& writes) const {
    const auto wrong = cases::unwritten_entry(watched_, before_, after_, writes);
    return wrong ? wrong->part + ": " + wrong->text : "";
  }

  static constexpr std::int64_t kSlot = 11;
  cases::WatchedEngine watched_;
  cases::Snapshot before_, after_;
};

// Each cache of the kind in turn is the only one without the entry.
TEST_F(WrittenEntries, EveryCacheOfAKindHoldsIt) {
  const std::vector<CacheView> caches = watched_.engine.caches();
  for (const CacheView& missing : caches) {
    after_ = before_;
    for (const CacheView& cache : caches) {
      if (cache.data != missing.data) change(cache);
    }
    const auto kind = static_cast<std::size_t>(missing.cache);
    const std::string text = found({write(kind, 5, 6)});
    EXPECT_EQ(text.find("prefix hit: "), 0u);
    EXPECT_NE(text.find(" 7 of request 2 was not written to slot 11 of " + missing.name),
              std::string::npos)
        << text;
    change(missing);
    EXPECT_EQ(found({write(kind, 5, 6)}), "");
  }
}

TEST_F(WrittenEntries, TheSameEntryMayKeepItsBytes) {
  EXPECT_EQ(found({write(0, 5, 5)}), "");
  EXPECT_EQ(found({write(0, 5, 6), write(0, 6, 5)}), "") << "it came back";
  EXPECT_NE(found({write(0, 5, 6), write(0, 6, 7)}), "");
}

}  // namespace written_entries_test
}  // namespace plumb::tests
