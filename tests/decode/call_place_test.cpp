// SPDX-License-Identifier: Apache-2.0
//
// The place of a call in a step consists of numbers. Seeds of the projection matrices follow from
// these numbers and never from the name that reports print.
#include <gtest/gtest.h>

#include "decode/engine/calls.h"
#include "decode/models/linear.h"
#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::tests {
namespace call_place_test {

using device::decode::CallPlace;
using device::decode::layer_place;
using device::decode::Projection;

std::uint64_t latest_seed = 0;

plumb_status keep_seed(const void* params) {
  latest_seed = static_cast<const plumb_linear_map_params*>(params)->seed;
  return PLUMB_OK;
}

// The seed of the matrix of a projection at this place.
std::uint64_t seed_at(const CallPlace& place, Projection projection) {
  const device::OpEntry entry{"linear_map", keep_seed, {}};
  const device::Implementation own{"test", {entry}};
  const device::decode::MissingOpPolicy missing;
  const device::decode::Caller call(own, own, missing, nullptr);
  const auto device = device::open_device("sim-sm90");
  const auto geometry = device::decode::small_geometry(1);
  device::CachingAllocator allocator(*device, device->create_stream(),
                                     device::CachingAllocator::Reuse::at_once);
  device::decode::EngineMemory memory(*device);
  const device::decode::StepInputs inputs(geometry, memory);
  device::decode::AttentionState attention(geometry, allocator);
  const device::decode::StepPlan plan;
  linear({call, inputs, attention, 0, plan}, place, projection, nullptr, 0, nullptr, 0);
  return latest_seed;
}

CallPlace drafted(CallPlace place) {
  place.draft = true;
  return place;
}

TEST(DecodeCallPlace, CarriesLayerAndChunkAsNumbers) {
  const CallPlace place = layer_place(12, "prefill candidates").in_chunk(3);
  EXPECT_EQ(place.name, "layer 12 prefill candidates of chunk 3");
  EXPECT_EQ(place.layer, 12);
  EXPECT_EQ(place.chunk, 3);
  EXPECT_FALSE(place.draft);
  EXPECT_EQ(CallPlace("embedding").layer, -1);
}

TEST(DecodeCallPlace, AReworkedNameLeavesTheMatrixAsItIs) {
  CallPlace place = layer_place(1, "q projection");
  const std::uint64_t seed = seed_at(place, Projection::q);
  place.name = "block 7 queries";
  EXPECT_EQ(seed_at(place, Projection::q), seed);
}

TEST(DecodeCallPlace, EachLayerModelAndProjectionHasAMatrixOfItsOwn) {
  const CallPlace place = layer_place(1, "any");
  const std::uint64_t seed = seed_at(place, Projection::q);
  EXPECT_NE(seed_at(layer_place(0, "any"), Projection::q), seed);
  EXPECT_NE(seed_at(place, Projection::kv), seed);
  EXPECT_NE(seed_at(drafted(place), Projection::q), seed);
}

// Fixed seeds: a step that was recorded by an earlier version can be run again.
TEST(DecodeCallPlace, MatricesAreThoseOfEarlierVersions) {
  EXPECT_EQ(seed_at(layer_place(1, "any"), Projection::q), 0x9bd02fb8bac0646fu);
  EXPECT_EQ(seed_at(drafted(layer_place(0, "any")), Projection::q), 0xc8fbe0bbd5662ccfu);
  EXPECT_EQ(seed_at("any", Projection::draft_stream), 0xdf76eba3a769ae99u);
}

}  // namespace call_place_test
}  // namespace plumb::tests
