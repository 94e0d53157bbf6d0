// SPDX-License-Identifier: Apache-2.0
//
// A report explains wrong outputs by what the run knows beyond the expected values: what outputs
// held before the launch, and what earlier steps stored.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cases/drivers/op_chain.h"
#include "cases/drivers/session.h"
#include "cases/tables/registry.h"
#include "device/device.h"

namespace plumb::cases {
namespace clues_test {

class Clued : public testing::Test {
 protected:
  TensorSet read_back(Poison poison) {
    std::vector<std::string> damage;
    TensorSet got = session.read_back(buffers, poison, damage);
    EXPECT_EQ(damage, std::vector<std::string>{});
    return got;
  }

  // Outputs of a launch with these inputs.
  TensorSet stored(const Step& step, Poison poison) {
    session.set_inputs(step, buffers);
    session.poison(buffers, poison);
    session.launch(buffers);
    return read_back(poison);
  }

  // Outputs without a launch: they still hold the poison.
  TensorSet left(const Step& step, Poison poison) {
    session.set_inputs(step, buffers);
    session.poison(buffers, poison);
    return read_back(poison);
  }

  // The last line of the report on wrong outputs; "" if they are right.
  std::string said_of(const Step& step, const TensorSet& got) {
    result.failures.clear();
    session.judge(step, got, {}, "here");
    return result.failures.empty() ? "" : result.failures.front().lines.back();
  }

  const OpDefinition& op = find_op("rms_norm");
  const Row row = ad_hoc_row(op, {{"tokens", 4}, {"hidden", 512}});
  const std::unique_ptr<Problem> problem =
      op.make_problem(row, device::open_device("sim-sm90")->properties());
  const Case which{&op, row};
  const RunOptions options{.platform = "sim-sm90"};
  const Point point;
  CaseResult result;
  Session session{*problem, which, point, options, result};
  Buffers buffers = session.make_buffers();
  const Step first{1, 4}, second{2, 4};
};

TEST_F(Clued, OutputsThatNobodyWrote) {
  EXPECT_EQ(said_of(first, stored(first, Poison::nan)), "");
  EXPECT_EQ(said_of(first, left(first, Poison::nan)),
            "each wrong row was never written (still holds plumb's poison)");
  EXPECT_EQ(said_of(first, left(first, Poison::huge)),
            "each wrong row was never written (still holds plumb's poison)");
  EXPECT_EQ(said_of(first, left(first, Poison::zero)),
            "each wrong row is zero, as before the launch");
}

// If streams run their work late there is a second explanation: the launcher wrote at once instead
// of in its stream, and the stream poisoned the outputs later.
TEST_F(Clued, OutputsThatNobodyWroteOnLateStreams) {
  Point late;
  late.conditions.policy = device::Policy::late;
  Session other{*problem, which, late, options, result};
  const TensorSet got = left(first, Poison::nan);
  other.judge(first, got, {}, "here");
  ASSERT_FALSE(result.failures.empty());
  EXPECT_EQ(result.failures.front().lines.back(),
            "each wrong row was never written (still holds plumb's poison), or written before the "
            "stream reached this launch");
}

TEST_F(Clued, OutputsOfAnEarlierStep) {
  const TensorSet then = stored(first, Poison::nan);
  session.remember(then, 0);
  TensorSet got = stored(second, Poison::nan);
  EXPECT_EQ(said_of(second, got), "");
  got.at("out").bytes() = then.at("out").bytes();
  EXPECT_EQ(said_of(second, got), "each wrong row holds the result of step 0");
}

}  // namespace clues_test
}  // namespace plumb::cases
