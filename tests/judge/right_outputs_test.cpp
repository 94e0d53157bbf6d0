// SPDX-License-Identifier: Apache-2.0
//
// Right outputs, built from the expectations alone: for every op they pass the op's own verdict,
// and the earlier contents of the outputs have no influence.
#include "cases/judge/right_outputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/registry.h"
#include "device/device.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace right_outputs_test {

class OneCall {
 public:
  OneCall(const Case& which, const std::string& platform, const Step& step)
      : problem_(which.op->make_problem(which.row, device::open_device(platform)->properties())),
        entry_(*device::find_entry(device::builtin_implementation(platform), which.op->name)),
        step_(step),
        tensors_(problem_->make_tensors()) {
    step_.live = problem_->capacity();
    problem_->fill(step_, tensors_);
  }

  RightOutputs with_outputs(std::uint8_t filled) const {
    TensorSet set = tensors_;
    for (HostTensor& tensor : set.all()) {
      if (tensor.spec().role == Role::input || tensor.bytes().empty()) continue;
      std::memset(tensor.bytes().data(), filled, tensor.bytes().size());
    }
    return right_outputs(set, [this](const TensorSet& all) { return expect(all); });
  }

  // Verdicts on the promised bits written over outputs filled with this byte, as on a device.
  std::vector<TensorReport> judge_over(const RightOutputs& right, std::uint8_t filled) const {
    TensorSet set = tensors_;
    for (const HostTensor& output : right.outputs.all()) {
      Bytes& bytes = set.at(output.spec().name).bytes();
      if (!bytes.empty()) std::memset(bytes.data(), filled, bytes.size());
      write_promised(right, output.spec().name, bytes);
    }
    return compare(expect(set));
  }

 private:
  Expectations expect(const TensorSet& tensors) const {
    return problem_->expect(step_, tensors, to_reference(entry_.numerics), entry_.numerics);
  }

  std::unique_ptr<Problem> problem_;
  const device::OpEntry& entry_;
  Step step_;
  TensorSet tensors_;
};

bool any_promised(const RightOutputs& right) {
  return std::any_of(right.promised.begin(), right.promised.end(), [](const auto& one) {
    return std::any_of(one.second.begin(), one.second.end(),
                       [](std::byte b) { return b != std::byte{0}; });
  });
}

bool same(const RightOutputs& a, const RightOutputs& b) {
  return std::all_of(a.outputs.all().begin(), a.outputs.all().end(), [&](const HostTensor& one) {
    return one.bytes() == b.outputs.at(one.spec().name).bytes();
  });
}

// Checks the eager cases of the smoke tier, which has rows of every op.
void check_all(const std::string& platform, Fill fill, DeadRows dead) {
  std::map<std::string, int> checked;
  for (const Case& which : all_cases()) {
    if (which.row.tier != Tier::smoke || which.scenario->mode != Scenario::Mode::eager) continue;
    if (which.row.real_only) continue;
    SCOPED_TRACE(platform + " " + which.id());
    const OneCall call(which, platform, {7, 0, fill, dead});
    const RightOutputs right = call.with_outputs(0xff);
    EXPECT_EQ(right.refused, "");
    EXPECT_TRUE(same(right, call.with_outputs(0x2a)));
    for (const TensorReport& report : call.judge_over(right, 0xa5)) {
      EXPECT_TRUE(report.passed()) << report.failures.front();
    }
    EXPECT_TRUE(any_promised(right) || !which.row.trivial.empty());
    ++checked[std::string(which.op->name)];
  }
  for (const OpDefinition& op : all_ops()) EXPECT_GT(checked[std::string(op.name)], 0) << op.name;
}

// Which tokens exist follows from the inputs of a call, not from what fill() would draw for the
// step.
TEST(RightOutputs, FollowTheInputsAndNotTheStep) {
  const OpDefinition& op = find_op("c128a_decode_metadata");
  Row row = row_of(op, {{"decode_tokens", 8}, {"prefill_tokens", 0}, {"more_buffer_tokens", 0}});
  const auto problem = op.make_problem(row, device::open_device("sim-sm90")->properties());
  const Step step{0, problem->capacity(), Fill::real, DeadRows::foreign};
  TensorSet tensors = problem->make_tensors();
  problem->fill(step, tensors);
  HostTensor& slots = tensors.at("slot_mapping");
  for (std::int64_t token = 0; token < 8; ++token) slots.data<std::int64_t>()[token] = token;
  const RightOutputs right = right_outputs(
      tensors, [&](const TensorSet& set) { return problem->expect(step, set, {}, {}); });
  EXPECT_EQ(right.refused, "");
  const Bytes& promised = right.promised.at("decode_slots");
  EXPECT_EQ(std::count(promised.begin(), promised.end(), std::byte{0}), 0);
}

TensorSet one_output() {
  TensorSet tensors;
  tensors.add({"out", Dtype::i32, {2}, {}, Role::output});
  return tensors;
}

struct NeverRight final : Truth {
  TensorReport compare(const HostTensor&, const RowMask&, const ColumnRanges&) const override {
    return {.tensor = "out", .failures = {"out: never right"}};
  }
};

TEST(RightOutputs, ThatFailTheirOwnJudgeAreRefused) {
  const RightOutputs right = right_outputs(one_output(), [](const TensorSet& set) {
    Expectation one = expect_exact(set.at("out"), {1, 2}, {});
    one.truth = std::make_shared<const NeverRight>();
    return Expectations{one};
  });
  EXPECT_EQ(right.refused, "out: never right");
}

TEST(RightOutputs, ThatNeverSettleAreRefused) {
  const RightOutputs right = right_outputs(one_output(), [](const TensorSet& set) {
    const HostTensor& out = set.at("out");
    return Expectations{expect_exact(out, {out.data<std::int32_t>()[0] + 1, 0}, {})};
  });
  EXPECT_EQ(right.refused,
            "the right values of the outputs depend on each other and do not settle");
}

TEST(RightOutputs, APartOfNobodyKnowsWhatIsAnError) {
  const HostTensor part({"part of out", Dtype::i32, {1}});
  EXPECT_THROW(
      right_outputs(one_output(),
                    [&](const TensorSet&) { return Expectations{expect_exact(part, {1}, {})}; }),
      std::logic_error);
}

TEST(RightOutputs, OfEveryOpPassItsJudge) { check_all("sim-sm90", Fill::real, DeadRows::foreign); }
TEST(RightOutputs, OfEveryOpInTheOtherDialect) {
  check_all("sim-gfx942", Fill::exact, DeadRows::foreign);
}
TEST(RightOutputs, OfValuesThatOpsAreKnownToGetWrong) {
  check_all("sim-gfx950", Fill::adversarial, DeadRows::foreign);
}

}  // namespace right_outputs_test
}  // namespace plumb::cases
