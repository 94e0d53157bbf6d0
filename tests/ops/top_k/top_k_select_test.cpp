// SPDX-License-Identifier: Apache-2.0
//
// Tests how one block selects the k largest of a row (device/kernels/top_k/top_k_select.h): equal
// bits for every block size, order of threads and amount of shared memory, with and without a list
// of candidates. Also tests how much shared memory launchers reserve.
#include <gtest/gtest.h>
#include <plumb/ops/top_k.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#define PLUMB_KERNEL_SET top_k_test_kernels
#include "cases/ops/top_k/top_k.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "device/kernels/top_k/top_k_select.h"
#include "device/sim/launch.h"

namespace plumb::device::kernels {
device::OpEntry top_k_per_row_prefill();
}  // namespace plumb::device::kernels

namespace plumb::device::top_k_test_kernels {

// Runs one block of any size on one row.
template <bool kept>
PLUMB_KERNEL void select_one(TopKWindow<float> window, std::int32_t k, std::int32_t* indices,
                             TopKRoom room) {
  PLUMB_SHARED(TopKShared, shared, 1);
  select_top_k<kept>(window, k, indices, room, shared);
}

// Launches select_one with one block. room.span == 0: shared memory for the flags of all tiles.
plumb_status launch_select_one(int block, TopKRoom room, const TopKWindow<float>& window,
                               std::int32_t k, std::int32_t* indices, plumb_stream stream) {
  const std::int64_t tile = block * kTopKColumns;
  if (room.span == 0) {
    room.span = static_cast<int>((window.length + kTopKChunk + tile - 1) / tile);
  }
  const LaunchShape shape{1, 1, block, top_k_room_bytes(block, room)};
  if (window.length + kTopKChunk <= tile) {
    return PLUMB_LAUNCH(select_one<true>, shape, stream, window, k, indices, room);
  }
  return PLUMB_LAUNCH(select_one<false>, shape, stream, window, k, indices, room);
}

}  // namespace plumb::device::top_k_test_kernels

namespace plumb::cases {
namespace top_k_select_test {

using device::Conditions;
using device::Order;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

// Where a row starts, `lead` elements after an aligned address, and the shared memory of the block.
struct Placing {
  int span = 0;  // number of tiles with room for their flags; 0: all
  int candidates = 2000;
  std::size_t lead = 0, column_stride = 1;
};

std::vector<std::int32_t> select_with(int block, const std::vector<float>& logits, std::int32_t k,
                                      const std::string& platform, const Conditions& conditions,
                                      const Placing& placing = {}) {
  const auto device = device::open_device(platform, conditions);
  const device::Stream stream = device->create_stream();
  std::vector<float> row(placing.lead + logits.size() * placing.column_stride, NAN);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    row[placing.lead + i * placing.column_stride] = logits[i];
  }
  const std::size_t bytes = row.size() * sizeof(float);
  auto* const in = static_cast<float*>(device->allocate(bytes, "logits"));
  std::vector<std::int32_t> indices(static_cast<std::size_t>(k));
  const std::size_t out_bytes = indices.size() * sizeof(std::int32_t);
  auto* out = static_cast<std::int32_t*>(device->allocate(out_bytes, "indices"));
  device->copy(in, row.data(), bytes, stream);
  const auto stride = static_cast<std::int64_t>(placing.column_stride);
  EXPECT_EQ(device::top_k_test_kernels::launch_select_one(
                block, {placing.span, placing.candidates},
                {in + placing.lead, stride, std::ssize(logits)}, k, out, stream),
            PLUMB_OK);
  device->copy(indices.data(), out, out_bytes, stream);
  EXPECT_TRUE(device->check_guards().empty());
  return indices;
}

// 1100 logits with eleven different values, many of them tied at the threshold.
std::vector<float> tied_logits() {
  std::vector<float> logits(1100);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(integer(3, i, -5, 5));
  }
  return logits;
}

// Columns of the k largest logits, ascending. Of equal logits the first ones are taken.
std::vector<std::int32_t> first_winners(const std::vector<float>& logits, std::int32_t k) {
  std::vector<std::int32_t> winners(static_cast<std::size_t>(k));
  reference::select_top_k({logits.data(), 1, std::ssize(logits)}, k, winners.data());
  std::sort(winners.begin(), winners.end());
  return winners;
}

std::vector<Placing> every_placing() {
  std::vector<Placing> all;
  for (const int span : {0, 1, 3}) {
    for (const int candidates : {0, 301, 2000}) {
      for (const std::size_t lead : {0, 1, 2, 3}) {
        for (const std::size_t stride : {1, 2}) all.push_back({span, candidates, lead, stride});
      }
    }
  }
  return all;
}

// How launches since the last reset used the list of candidates, from the barriers that they
// passed: one follows the listing, and two more follow if the list holds all winners.
enum class Listing { none, given_up, used };

Listing listing() {
  std::set<std::string> sites;
  for (const std::string& site : device::sim::executed_barriers()) {
    if (site.starts_with("top_k_list.h:")) sites.insert(site);
  }
  return sites.empty() ? Listing::none : sites.size() == 1 ? Listing::given_up : Listing::used;
}

TEST(TopKKernels, EveryBlockSizeGivesTheSameIndicesInAscendingOrder) {
  const std::vector<float> logits = tied_logits();
  const std::vector<std::int32_t> expected = first_winners(logits, 300);
  for (const std::string& platform : kPlatforms) {
    for (const int block : {1, 7, 31, 32, 33, 64, 100, 192, 256, 1000, 1024}) {
      EXPECT_EQ(select_with(block, logits, 300, platform, {}), expected)
          << platform << " block " << block;
    }
  }
}

TEST(TopKKernels, EveryStartAndEveryRoomGivesTheSameIndices) {
  const std::vector<float> logits = tied_logits();
  const std::vector<std::int32_t> expected = first_winners(logits, 300);
  for (const std::string& platform : kPlatforms) {
    for (const int block : {7, 32, 33, 64}) {
      for (const Placing& placing : every_placing()) {
        EXPECT_EQ(select_with(block, logits, 300, platform, {}, placing), expected)
            << platform << " block " << block << " span " << placing.span << " list of "
            << placing.candidates << " lead " << placing.lead << " stride "
            << placing.column_stride;
      }
    }
  }
}

TEST(TopKKernels, EveryOrderOfThreadsGivesTheSameIndices) {
  const std::vector<float> logits = tied_logits();
  const std::vector<std::int32_t> expected = first_winners(logits, 257);
  for (const std::string& platform : kPlatforms) {
    for (const Order order : {Order::forward, Order::reverse, Order::random}) {
      Conditions conditions;
      conditions.order = order;
      conditions.seed = 11;
      EXPECT_EQ(select_with(192, logits, 257, platform, conditions), expected) << platform;
    }
  }
}

TEST(TopKKernels, ARowIsListedIfItsListFitsAndItsSampleServes) {
  struct Expected {
    int block;
    std::int32_t k;
    int span, candidates;
    Listing listing;
  };
  const std::vector<float> logits = tied_logits();
  for (const Expected& row : {Expected{32, 300, 0, 2000, Listing::used},
                              {7, 300, 0, 2000, Listing::used},
                              {7, 1, 0, 2000, Listing::used},
                              {33, 300, 0, 2000, Listing::used},
                              {32, 300, 0, 0, Listing::none},
                              {7, 300, 1, 2000, Listing::none},
                              {64, 300, 0, 2000, Listing::none},  // one tile
                              {32, 700, 0, 2000, Listing::none},  // the sample is too small
                              {32, 300, 0, 301, Listing::given_up}}) {
    for (const std::string& platform : kPlatforms) {
      device::sim::reset_executed_barriers();
      const Placing placing = {.span = row.span, .candidates = row.candidates};
      EXPECT_EQ(select_with(row.block, logits, row.k, platform, {}, placing),
                first_winners(logits, row.k));
      EXPECT_EQ(listing(), row.listing)
          << platform << " block " << row.block << " k " << row.k << " list of " << row.candidates;
    }
  }
}

// Logits that mislead the kernel's estimate of the threshold. A block of 32 threads samples the
// middle 128 of each 1024 columns, and there all logits are larger by `sampled`.
std::vector<float> misleading_logits(float sampled) {
  std::vector<float> logits(4096);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool in_sample = i % 1024 >= 448 && i % 1024 < 576;
    logits[i] = (in_sample ? sampled : 0.0F) + static_cast<float>(integer(5, i, -400, 400)) / 256;
  }
  return logits;
}

TEST(TopKKernels, ASampleThatMisleadsCostsNothingButTime) {
  struct Expected {
    float sampled;
    std::int32_t k;
    int candidates;
    Listing listing;
  };
  for (const Expected& row : {Expected{9, 1, 2000, Listing::used},
                              {9, 100, 2000, Listing::given_up},  // the list has too few candidates
                              {9, 700, 2000, Listing::given_up},
                              {-9, 1, 2000, Listing::given_up},  // the list has too many candidates
                              {-9, 100, 2000, Listing::given_up},
                              {-9, 100, 4096, Listing::used},
                              {-9, 700, 4096, Listing::used}}) {
    const std::vector<float> logits = misleading_logits(row.sampled);
    for (const std::string& platform : kPlatforms) {
      device::sim::reset_executed_barriers();
      EXPECT_EQ(select_with(32, logits, row.k, platform, {}, {.candidates = row.candidates}),
                first_winners(logits, row.k))
          << platform << " sampled " << row.sampled << " k " << row.k;
      EXPECT_EQ(listing(), row.listing) << platform << " sampled " << row.sampled << " k " << row.k;
    }
  }
}

// All keys have equal first bits: lists are short only if the sample is sorted by the others too.
TEST(TopKKernels, KeysThatDifferInTheirLastBitsAreListed) {
  std::vector<float> logits(4096);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] =
        std::bit_cast<float>(0x3f900000u | static_cast<std::uint32_t>(integer(6, i, 0, 4095)));
  }
  for (const std::string& platform : kPlatforms) {
    for (const std::int32_t k : {1, 100}) {
      device::sim::reset_executed_barriers();
      EXPECT_EQ(select_with(32, logits, k, platform, {}, {.candidates = 500}),
                first_winners(logits, k));
      EXPECT_EQ(listing(), Listing::used) << platform << " k " << k;
    }
  }
}

TEST(TopKKernels, EqualKeysAreTheFirstOnesOfThem) {
  const std::vector<float> logits(3000, 1.25F);
  for (const int candidates : {2000, 3000}) {
    device::sim::reset_executed_barriers();
    for (const std::string& platform : kPlatforms) {
      EXPECT_EQ(select_with(32, logits, 200, platform, {}, {.candidates = candidates}),
                first_winners(logits, 200));
    }
    EXPECT_EQ(listing(), candidates < 3000 ? Listing::given_up : Listing::used);
  }
}

// Thresholds that are positive, negative, zero, infinite or NaN, and keys that differ in their
// first bits, in their last bits, and in every second column.
TEST(TopKKernels, KeysOfEveryKindAreListed) {
  const auto low_bits = [](std::size_t i) {
    return std::bit_cast<float>(0xbf900000u | static_cast<std::uint32_t>(integer(1, i, 0, 1023)));
  };
  const auto specials = [](std::size_t i) {
    const float values[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 1e-40F, -1e-40F, 1, -1};
    return values[integer(2, i, 0, 9)];
  };
  const auto any_bits = [](std::size_t i) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(random_bits(3, i)));
  };
  const auto negative = [](std::size_t i) { return -1 - static_cast<float>(i * 7 % 1100); };
  const auto ascending = [](std::size_t i) { return static_cast<float>(i) - 550; };
  float (*const kinds[])(std::size_t) = {low_bits, specials, any_bits, negative, ascending};
  for (int kind = 0; kind < std::ssize(kinds); ++kind) {
    std::vector<float> logits(1100);
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = kinds[kind](i);
    for (const std::int32_t k : {1, 40, 140, 300}) {
      for (const std::string& platform : kPlatforms) {
        for (const int block : {7, 32}) {
          device::sim::reset_executed_barriers();
          EXPECT_EQ(select_with(block, logits, k, platform, {}), first_winners(logits, k))
              << platform << " kind " << kind << " block " << block << " k " << k;
        }
      }
    }
  }
}

// True if the kernel fails without this barrier, which small cases (tests/faults/barriers_test.cpp)
// do not reach: the indices are wrong, or the sample is wrong and the row is read again.
bool fails_without(const std::string& barrier, const std::vector<float>& logits,
                   const std::string& platform) {
  for (const Order order : {Order::forward, Order::reverse, Order::random}) {
    Conditions conditions;
    conditions.order = order;
    conditions.seed = 3;
    conditions.disabled_barriers = {barrier};
    device::sim::reset_executed_barriers();
    try {
      const auto indices = select_with(100, logits, 500, platform, conditions);
      if (indices != first_winners(logits, 500) || listing() != Listing::used) return true;
    } catch (const device::DeviceError&) {
      return true;
    }
  }
  return false;
}

TEST(TopKKernels, EveryBarrierOfAListedRowIsNeeded) {
  std::vector<float> logits(9000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(integer(4, i, -5000, 5000)) / 256;
  }
  for (const std::string& platform : kPlatforms) {
    device::sim::reset_executed_barriers();
    EXPECT_EQ(select_with(100, logits, 500, platform, {}), first_winners(logits, 500));
    ASSERT_EQ(listing(), Listing::used);
    for (const std::string& barrier : device::sim::executed_barriers()) {
      EXPECT_TRUE(fails_without(barrier, logits, platform)) << platform << " " << barrier;
    }
  }
}

TEST(TopKKernels, LaunchesMakeRoomForAListAndFillAMultiprocessor) {
  struct Expected {
    std::string platform;
    std::int64_t rows, columns;
    std::int32_t k;
    int block, span;
    bool listed;
  };
  for (const Expected& row : {Expected{"sim-sm90", 8192, 32 << 10, 2048, 256, 4, true},
                              {"sim-sm90", 8192, 32 << 10, 1024, 256, 4, true},
                              {"sim-sm90", 8192, 64 << 10, 2048, 512, 4, true},
                              {"sim-sm90", 1024, 256 << 10, 2048, 512, 16, true},
                              {"sim-sm90", 2, 65537, 2048, 1024, 3, true},
                              {"sim-sm90", 8192, 8 << 10, 2048, 256, 1, false},
                              {"sim-sm90", 64, 1 << 20, 2048, 1024, 27, false},
                              {"sim-gfx942", 8192, 32 << 10, 2048, 1024, 1, false},
                              {"sim-gfx942", 2, 65537, 2048, 1024, 3, true},
                              {"sim-gfx942", 2, 200000, 2048, 1024, 6, false}}) {
    const auto device = device::open_device(row.platform, {});
    plumb_top_k_per_row_prefill_params params{};
    params.rows = row.rows;
    params.columns = params.logits_row_stride = row.columns;
    params.k = row.k;
    params.stream = device->create_stream();
    const auto launch = device::top_k_test_kernels::top_k_launch(params);
    EXPECT_EQ(launch.shape.block, row.block) << row.platform << " " << row.columns;
    EXPECT_EQ(launch.room.span, row.span) << row.platform << " " << row.columns;
    EXPECT_EQ(launch.room.candidates > 0, row.listed) << row.platform << " " << row.columns;
    EXPECT_LE(launch.shape.dynamic_shared_bytes + sizeof(device::top_k_test_kernels::TopKShared),
              device->properties().shared_bytes_per_block);
  }
}

TEST(TopKKernels, RowsBeyondEightGigabytesAreFound) {
  const auto device = device::open_device("sim-sm90", {});
  const device::Stream stream = device->create_stream();
  constexpr std::int64_t kRowStride = std::int64_t{1} << 31;  // elements: 2^33 bytes
  const std::vector<float> logits = tied_logits();
  const std::size_t bytes = logits.size() * sizeof(float);
  auto* sparse =
      static_cast<float*>(device->allocate_sparse(kRowStride * sizeof(float) + bytes, "logits"));
  const std::vector<std::int32_t> bounds = {0, 0, 1100, 1100};
  auto* starts = static_cast<std::int32_t*>(device->allocate(16, "bounds"));
  auto* indices = static_cast<std::int32_t*>(device->allocate(2 * 300 * 4, "indices"));
  for (const std::int64_t row : {0, 1}) {
    device->copy(sparse + row * kRowStride, logits.data(), bytes, stream);
  }
  device->copy(starts, bounds.data(), 16, stream);
  const plumb_top_k_per_row_prefill_params params{.logits = sparse,
                                                  .row_starts = starts,
                                                  .row_ends = starts + 2,
                                                  .indices = indices,
                                                  .rows = 2,
                                                  .columns = 1100,
                                                  .logits_row_stride = kRowStride,
                                                  .logits_column_stride = 1,
                                                  .k = 300,
                                                  .indices_row_stride = 300,
                                                  .stream = stream};
  ASSERT_EQ(device::kernels::top_k_per_row_prefill().launch(&params), PLUMB_OK);
  std::vector<std::int32_t> stored(600);
  device->copy(stored.data(), indices, 2 * 300 * 4, stream);
  const std::vector<std::int32_t> expected = first_winners(logits, 300);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), stored.begin()));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), stored.begin() + 300));
}

}  // namespace top_k_select_test
}  // namespace plumb::cases
