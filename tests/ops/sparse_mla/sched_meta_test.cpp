// SPDX-License-Identifier: Apache-2.0
//
// Tests the check of get_decoding_sched_meta: every plan that processes each block once is right,
// in any order of its parts. Wrong plans are reported by request and block.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <plumb/ops/sparse_mla.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "reference/sparse_mla/get_decoding_sched_meta.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::kernels {
device::OpEntry get_decoding_sched_meta();
}  // namespace plumb::device::kernels

namespace plumb::cases {

OpDefinition define_get_decoding_sched_meta();

namespace sched_meta_test {

using reference::RequestBlocks;
using reference::Tile;
using Blocks = std::vector<RequestBlocks>;
using Tiles = std::vector<Tile>;

Blocks random_blocks(std::uint64_t seed) {
  Blocks blocks;
  for (std::int64_t i = integer(seed, 0, 1, 40); i > 0; --i) {
    const std::int64_t most = i % 3 == 0 ? 30 : 2;
    blocks.push_back({static_cast<std::int32_t>(integer(seed, i, 1, most)),
                      static_cast<std::int32_t>(integer(seed, 100 + i, 0, most))});
  }
  return blocks;
}

// A random right plan: cuts anywhere between blocks, parts and splits in any order, and two parts
// without work.
Tiles any_tiles(const Blocks& blocks, std::uint64_t seed) {
  std::vector<std::pair<std::int32_t, std::int32_t>> all;  // request, block
  for (std::int32_t request = 0; request < std::ssize(blocks); ++request) {
    for (std::int32_t b = 0; b < blocks[request].total(); ++b) all.push_back({request, b});
  }
  std::set<std::int64_t> cuts{0, std::ssize(all)};
  for (std::int64_t i = 0; i < 12; ++i) cuts.insert(integer(seed, 200 + i, 0, std::ssize(all)));
  std::vector<std::int64_t> ends(cuts.begin(), cuts.end());
  Tiles tiles;
  std::vector<std::int32_t> splits(blocks.size(), 0);
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const auto [first, begin] = all[ends[i]];
    const auto [last, end] = all[ends[i + 1] - 1];
    const bool cut_behind = end + 1 < blocks[last].total(), one = first == last;
    Tile tile{first, last, begin, end + 1, splits[first]++, begin > 0, cut_behind};
    if (one) tile.first_split = begin > 0 || cut_behind;
    // The check must ignore last_split if the part has one request.
    if (one) tile.last_split = static_cast<std::int32_t>(seed % 2);
    if (!one) ++splits[last];
    tiles.push_back(tile);
  }
  const std::int32_t none = static_cast<std::int32_t>(blocks.size());
  tiles.push_back({none, -7, 5, 3, 9, 1, 1});
  tiles.push_back({none + 3, 0, 0, 0, 0, 0, 0});
  for (std::size_t i = tiles.size(); i > 1; --i) {
    std::swap(tiles[i - 1], tiles[integer(seed, 300 + i, 0, static_cast<std::int64_t>(i) - 1)]);
  }
  return tiles;
}

// True if a kernel that follows the parts processes each block of each request once and each split
// is written by one part.
bool does_right(const Blocks& blocks, const Tiles& tiles) {
  std::vector<std::vector<int>> done;
  std::vector<std::vector<std::int32_t>> written(blocks.size());  // -1: written as a whole
  for (const RequestBlocks& request : blocks) done.emplace_back(request.total(), 0);
  for (const Tile& tile : tiles) {
    if (tile.begin_req >= std::ssize(blocks)) continue;
    if (tile.begin_req < 0 || tile.end_req >= std::ssize(blocks)) return false;
    if (tile.end_req < tile.begin_req) return false;  // the part claims work but has none
    for (std::int32_t request = tile.begin_req; request <= tile.end_req; ++request) {
      const bool first = request == tile.begin_req, last = request == tile.end_req;
      const std::int32_t from = first ? tile.begin_block : 0;
      const std::int32_t to = last ? tile.end_block : blocks[request].total();
      if (from < 0 || to > blocks[request].total() || from >= to) return false;
      for (std::int32_t b = from; b < to; ++b) ++done[request][b];
      const bool split = first ? tile.first_split != 0 : last && tile.last_split != 0;
      written[request].push_back(split ? (first ? tile.begin_split : 0) : -1);
    }
  }
  for (std::size_t request = 0; request < blocks.size(); ++request) {
    const std::vector<int>& own = done[request];
    if (std::count(own.begin(), own.end(), 1) != std::ssize(own)) return false;
    std::vector<std::int32_t>& splits = written[request];
    std::sort(splits.begin(), splits.end());
    std::vector<std::int32_t> right(splits.size());
    std::iota(right.begin(), right.end(), splits.size() == 1 ? -1 : 0);
    if (splits != right) return false;
  }
  return true;
}

TEST(SchedMeta, EveryPlanThatDoesEachBlockOnceIsRight) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Blocks blocks = random_blocks(seed);
    const Tiles any = any_tiles(blocks, seed);
    const auto own = reference::make_tile_plan(blocks, 13, static_cast<std::int32_t>(seed % 6));
    for (const Tiles& tiles : {any, own.tiles}) {
      ASSERT_TRUE(does_right(blocks, tiles)) << seed;
      ASSERT_TRUE(check_tiles(tiles, blocks).defects.empty()) << seed;
    }
    std::vector<std::int32_t> sums{0};
    for (const std::int64_t parts : check_tiles(own.tiles, blocks).parts) {
      sums.push_back(sums.back() + static_cast<std::int32_t>(parts));
    }
    EXPECT_EQ(sums, own.num_splits) << seed;
  }
}

TEST(SchedMeta, AKernelAgreesAboutWrongOnes) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Blocks blocks = random_blocks(seed);
    Tiles tiles = any_tiles(blocks, seed);
    Tile& tile = tiles[integer(seed, 400, 0, std::ssize(tiles) - 1)];
    std::int32_t* fields[] = {&tile.begin_req, &tile.end_req,     &tile.begin_block,
                              &tile.end_block, &tile.begin_split, &tile.first_split};
    const std::int64_t field = integer(seed, 401, 0, 5);
    if (field == 5) {
      tile.first_split = 1 - tile.first_split;
    } else {
      *fields[field] += seed % 2 == 0 ? 1 : -1;
    }
    const bool right = check_tiles(tiles, blocks).defects.empty();
    ASSERT_EQ(right, does_right(blocks, tiles)) << seed;
    wrong += !right;
  }
  EXPECT_GT(wrong, 1000);
}

// Requests of 1, 4 and 2 blocks (64 candidates each) in three parts.
class SchedMetaVerdict : public ::testing::Test {
 protected:
  SchedMetaVerdict()
      : op(define_get_decoding_sched_meta()),
        problem(
            op.make_problem(row_of(op, {{"requests", 3}, {"topk", 256}, {"num_sm_parts", 3}}), {})),
        tensors(problem->make_tensors()) {
    const std::int32_t lengths[] = {0, 256, 65};
    std::copy_n(lengths, 3, tensors.at("topk_length").data<std::int32_t>());
  }

  std::string said(const Tiles& tiles, const std::vector<std::int32_t>& num_splits) {
    auto* stored = tensors.at("tile_scheduler_metadata").data<std::int32_t>();
    for (const Tile& tile : tiles) {
      for (const std::int32_t field :
           {tile.begin_req, tile.end_req, tile.begin_block, tile.end_block, tile.begin_split,
            tile.first_split, tile.last_split, 77}) {
        *stored++ = field;
      }
    }
    std::copy(num_splits.begin(), num_splits.end(), tensors.at("num_splits").data<std::int32_t>());
    for (const TensorReport& report : problem->judge({}, tensors, {}, {})) {
      if (!report.passed()) return report.failures.front();
    }
    return "passed";
  }

  OpDefinition op;
  std::unique_ptr<Problem> problem;
  TensorSet tensors;
};

TEST_F(SchedMetaVerdict, NamesTheRequestAndTheBlock) {
  const Tile first{0, 1, 0, 2, 0, 0, 1}, second{1, 1, 2, 4, 1, 1, 1}, third{2, 2, 0, 2, 0, 0, 0};
  const std::vector<std::int32_t> splits{0, 1, 3, 4};
  const std::string of = "tile_scheduler_metadata: ";
  EXPECT_EQ(said({first, second, third}, splits), "passed");
  EXPECT_EQ(said({third, second, first}, splits), "passed");
  EXPECT_EQ(said({first, {1, 1, 2, 3, 1, 1, 1}, third}, splits),
            of + "request 1 (4 blocks): block 3 is in no part");
  EXPECT_EQ(said({first, {1, 1, 1, 4, 1, 1, 1}, third}, splits),
            of + "request 1 (4 blocks): block 1 is in part 0 and in part 1");
  EXPECT_EQ(said({first, second, {2, 3, 0, 2, 0, 0, 0}}, splits),
            of + "part 2 has requests 2 to 3, of 3");
  EXPECT_EQ(said({first, second, {2, 2, 0, 3, 0, 0, 0}}, splits),
            of + "part 2 has of request 2 (2 blocks) the blocks [0, 3)");
  EXPECT_EQ(said({first, {1, 1, 2, 4, 1, 0, 0}, third}, splits),
            of + "request 1 (4 blocks): part 1 says that it is whole, and other parts have it too");
  EXPECT_EQ(said({first, {1, 1, 2, 4, 0, 1, 1}, third}, splits),
            of + "request 1 (4 blocks): parts 0 and 1 write split 0");
  EXPECT_EQ(said({first, {1, 1, 2, 4, 2, 1, 1}, third}, splits),
            of + "request 1 (4 blocks): part 1 writes split 2");
  EXPECT_EQ(said({first, second, third}, {0, 1, 2, 3}).substr(0, 34),
            "num_splits: 2 of 4 rows (rows 2-3)");
}

TEST(SchedMetaKernel, RefusesWhatTheContractForbids) {
  const auto device = device::open_device("sim-sm90");
  const device::OpEntry entry = device::kernels::get_decoding_sched_meta();
  std::int32_t tiles[16] = {}, num_splits[3] = {};
  const auto status = [&](auto change) {
    plumb_get_decoding_sched_meta_params p{};
    p.struct_size = sizeof p;
    p.tile_scheduler_metadata = tiles;
    p.num_splits = num_splits;
    p.requests = p.num_sm_parts = 2;
    p.topk = p.block_n = 64;
    p.stream = device->create_stream();
    change(p);
    return entry.launch(&p);
  };
  EXPECT_EQ(status([](auto&) {}), PLUMB_OK);
  EXPECT_EQ(status([](auto& p) { p.requests = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.num_sm_parts = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.topk = -1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.extra_topk = -1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.block_n = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.fixed_overhead = -1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.num_splits = nullptr; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(entry.launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace sched_meta_test
}  // namespace plumb::cases
