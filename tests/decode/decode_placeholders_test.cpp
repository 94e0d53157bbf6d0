// SPDX-License-Identifier: Apache-2.0
//
// What a decode step calls in place of an op: projections and experts have no op of plumb's, an
// embedding is a table of the framework, and so is the filling of a buffer. Every other call is an
// op.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "decode/recording/placeholder_references.h"
#include "tests/support/decode_serving.h"

namespace plumb::tests {
namespace decode_placeholders_test {

using device::decode::Call;
using device::decode::Geometry;
using device::decode::GraphMode;

// "linear_map: layer N q projection", of calls that are no ops.
class PlaceholderList final : public device::decode::CallObserver {
 public:
  void begin(const device::decode::StepPart& part) override { fills_ = part.fills; }
  void before(const Call& call, device::Stream) override {
    if (fills_) return;
    if (!cases::is_placeholder(call.op)) {
      ops.insert(std::string(call.op));
      return;
    }
    static const std::regex number("[0-9]+");
    places.insert(std::string(call.op) + ": " + std::regex_replace(call.place.name, number, "N"));
  }
  void after(const Call&, device::Stream) override {}

  std::set<std::string> places, ops;

 private:
  bool fills_ = false;
};

// Projections and experts, embeddings, and buffers that a framework fills.
bool may_stay(const std::string& place) {
  static const std::regex right(
      "linear_map: (draft )?(layer N )?.*(projection|experts)"
      "|seeded_rows: (draft )?embedding"
      "|fill_rows: layer N (packed )?top-k reset");
  return std::regex_match(place, right);
}

// Of a step of decodes, of one in which requests differ, and of one with prompts.
PlaceholderList list_of(const Geometry& geometry, GraphMode mode) {
  Serving serving({.mode = mode, .geometry = geometry});
  PlaceholderList list;
  serving.engine.observe(&list);
  for (std::uint64_t id = 1; id <= 3; ++id)
    serving.engine.admit(id, 30 * static_cast<std::int64_t>(id));
  serving.engine.step(Ids{1, 2, 3});
  serving.engine.step({{1, 1}, {2, 2}});
  serving.engine.step({{1, 1}, {2, 10, true}, {3, 9, true}});
  serving.device->synchronize();
  serving.engine.observe(nullptr);
  return list;
}

std::set<std::string> others_of(const PlaceholderList& list) {
  std::set<std::string> others;
  for (const std::string& place : list.places) {
    if (!may_stay(place)) others.insert(place);
  }
  return others;
}

class DecodePlaceholders : public testing::TestWithParam<GraphMode> {};

TEST_P(DecodePlaceholders, OfV4AreProjectionsAndExperts) {
  Geometry geometry = device::decode::small_geometry(4, 3, 32);
  geometry.drafter = true;
  geometry.capture_sizes = {16, 32};
  const PlaceholderList list = list_of(geometry, GetParam());
  EXPECT_EQ(others_of(list), std::set<std::string>{});
  for (const char* op :
       {"paged_mqa_logits_metadata", "get_decoding_sched_meta", "cp_gather_indexer_k_quant_cache",
        "compressed_slot_mapping", "save_partial_states", "compress_norm_rope_insert"}) {
    EXPECT_TRUE(list.ops.contains(op)) << op;
  }
}

TEST_P(DecodePlaceholders, OfV32AreProjectionsAndExperts) {
  if (GetParam() == GraphMode::full_and_piecewise) GTEST_SKIP() << "of one query token only";
  Geometry geometry = device::decode::small_v32_geometry(4, 3, 64, 32);
  geometry.capture_sizes = {16, 32};
  const PlaceholderList list = list_of(geometry, GetParam());
  EXPECT_EQ(others_of(list), std::set<std::string>{});
  for (const char* op : {"paged_mqa_logits_metadata", "get_decoding_sched_meta",
                         "cp_gather_indexer_k_quant_cache"}) {
    EXPECT_TRUE(list.ops.contains(op)) << op;
  }
}

TEST(DecodePlaceholderList, AnotherOneIsSeen) {
  EXPECT_TRUE(may_stay("linear_map: layer N index weights projection"));
  EXPECT_TRUE(may_stay("fill_rows: layer N packed top-k reset"));
  EXPECT_FALSE(may_stay("seeded_rows: layer N compressed states"));
  EXPECT_FALSE(may_stay("linear_map: layer N attention"));
  EXPECT_FALSE(may_stay("fill_rows: layer N attention plan"));
}

INSTANTIATE_TEST_SUITE_P(Modes, DecodePlaceholders,
                         testing::Values(GraphMode::none, GraphMode::full_and_piecewise,
                                         GraphMode::breakable),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

}  // namespace decode_placeholders_test
}  // namespace plumb::tests
