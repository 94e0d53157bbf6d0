// SPDX-License-Identifier: Apache-2.0
//
// The drafter's step: its inputs come from the target's step, and its results depend on these only.
#include <gtest/gtest.h>
#include <plumb/ops/hyper_connection.h>
#include <plumb/ops/norm.h>

#include <map>

#include "device/kernels/placeholders/placeholder_kernels.h"
#include "tests/support/decode_serving.h"

namespace plumb::tests {

namespace decode_drafter_test {

using device::decode::Call;
using device::decode::GraphMode;

// Keeps the parameters of three named calls.
class Recorder final : public device::decode::CallObserver {
 public:
  void begin(const device::decode::StepPart&) override {}
  void before(const Call& call, device::Stream) override {
    keep<plumb_seeded_rows_params>(call, "draft embedding", rows);
    keep<plumb_mtp_input_rms_norm_params>(call, "draft input norm", input);
    keep<plumb_hc_head_params>(call, "head mix", target_head);
  }
  void after(const Call&, device::Stream) override {}

  plumb_seeded_rows_params rows{};
  plumb_mtp_input_rms_norm_params input{};
  plumb_hc_head_params target_head{};

 private:
  template <class Params>
  static void keep(const Call& call, std::string_view name, Params& where) {
    if (call.place.name == name) where = *static_cast<const Params*>(call.params);
  }
};

ServingOptions with_drafter(GraphMode mode = GraphMode::none) {
  ServingOptions options{.mode = mode};
  options.geometry.drafter = true;
  return options;
}

template <class T>
std::vector<T> read(Serving& serving, const T* from, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  serving.device->synchronize();
  serving.device->copy(values.data(), from, values.size() * sizeof(T), serving.engine.stream());
  return values;
}

TEST(DecodeDrafter, ItGoesOnFromTheTargetsStreamsAndTheNextTokens) {
  Serving serving(with_drafter());
  Recorder recorder;
  serving.admit_all();
  serving.engine.observe(&recorder);
  serving.engine.step({1, 2});
  EXPECT_EQ(recorder.input.previous_hidden, recorder.target_head.hidden_states);
  EXPECT_EQ(recorder.input.hc_mult, 4);
  const auto& plan = serving.engine.plan();
  const auto keys = read(serving, recorder.rows.keys, plan.live_tokens);
  const auto positions = read(serving, recorder.input.positions, plan.live_tokens);
  EXPECT_EQ(positions, (std::vector<std::int64_t>{5, 90}));
  for (std::size_t token = 0; token < keys.size(); ++token) {
    EXPECT_EQ(keys[token], plan.token_keys[token] + 1);
  }
}

TEST(DecodeDrafter, AtPositionZeroTheEmbeddingCountsAsZero) {
  Serving serving(with_drafter());
  Recorder recorder;
  serving.engine.admit(1, 0);
  serving.engine.admit(2, 3);
  serving.engine.observe(&recorder);
  serving.engine.step({1, 2});
  const auto hidden = static_cast<std::size_t>(recorder.input.hidden);
  const auto embeds = read(serving, recorder.input.out_embeds, 2 * recorder.input.hidden);
  const auto first_row = embeds.begin() + static_cast<std::ptrdiff_t>(hidden);
  EXPECT_EQ(std::count(embeds.begin(), first_row, 0), static_cast<std::ptrdiff_t>(hidden));
  EXPECT_LT(std::count(first_row, embeds.end(), 0), 8);
}

TEST(DecodeDrafter, ItsGraphsAreItsOwn) {
  Serving serving(with_drafter(GraphMode::full));
  serving.admit_all();
  serving.engine.capture();
  serving.engine.step({1, 2});
  EXPECT_EQ(serving.engine.latest().graph_launches, 2);
  EXPECT_EQ(serving.engine.latest().drafter_graph_launches, 1);
  EXPECT_EQ(serving.engine.counters().captures,
            2 * static_cast<std::int64_t>(serving.engine.geometry().capture_sizes.size()));
}

TEST(DecodeDrafter, TheTargetDoesNotDependOnIt) {
  Serving with(with_drafter()), without({.mode = GraphMode::none});
  with.admit_all();
  without.admit_all();
  for (const Ids& ids : {Ids{1, 2, 3, 4}, Ids{4, 2}, Ids{2}}) {
    with.engine.step(ids);
    without.engine.step(ids);
    auto rows = with.out();
    rows.resize(rows.size() / 2);
    EXPECT_EQ(rows, without.out());
  }
}

class OtherModeForTheDrafter final : public device::decode::ModePolicy {
 public:
  GraphMode drafter(std::optional<GraphMode>, GraphMode) const override {
    return GraphMode::piecewise;
  }
};

TEST(DecodeDrafter, AModeBesideAnotherOfTheTargetIsRefused) {
  ServingOptions options = with_drafter(GraphMode::full);
  options.policies.mode = std::make_shared<OtherModeForTheDrafter>();
  try {
    const Serving serving(options);
    FAIL() << "not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "PIECEWISE graphs of the drafter cannot run with FULL graphs of its target");
  }
}

}  // namespace decode_drafter_test

}  // namespace plumb::tests
