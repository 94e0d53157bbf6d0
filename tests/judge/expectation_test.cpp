// SPDX-License-Identifier: Apache-2.0
//
// Expectations are computed before any comparison, and one comparison turns them into a report.
#include "cases/judge/expectation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/registry.h"
#include "device/device.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace expectation_test {

HostTensor integers(const std::vector<std::int32_t>& values) {
  HostTensor tensor({"ids", Dtype::i32, {1, std::ssize(values)}, {}, Role::output});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.data<std::int32_t>()[i] = values[i];
  return tensor;
}

TEST(Expectation, IsComparedWithWhatIsStoredWhenItIsAsked) {
  HostTensor stored = integers({1, 2, 3});
  const Expectation one = expect_exact(stored, {1, 7, 3}, {});
  const TensorReport before = compare(one);
  EXPECT_EQ(before.wrong_elements, 1);
  EXPECT_EQ(before.wrong_rows, std::vector<std::int64_t>{0});
  stored.data<std::int32_t>()[1] = 7;
  EXPECT_TRUE(compare(one).passed());
}

TEST(Expectation, OutlivesTheTensorsThatItIsMadeOf) {
  std::vector<TensorReport> reports;
  {
    Expectations all;
    {
      const HostTensor stored = integers({4, 5});
      all.push_back(expect_exact(stored, {4, 6}, {}));
    }
    reports = compare(all);
  }
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports.front().wrong_elements, 1);
}

TEST(Expectation, NamesWhatItRestsOnBehindTheTensor) {
  Expectation one = expect_exact(integers({1}), {2}, {});
  one.basis = " (end to end)";
  const TensorReport report = compare(one);
  EXPECT_EQ(report.tensor, "ids (end to end)");
  EXPECT_TRUE(report.failures.front().starts_with("ids: "));
}

TEST(Expectation, LeavesOutRowsThatAreNotPromised) {
  Expectation one = expect_exact(integers({1}), {2}, RowMask{false});
  const TensorReport report = compare(one);
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.elements_compared, 0);
}

// The estimate (values and errors) of floating-point outputs is available without a verdict.
TEST(Expectation, OfFloatingPointOutputsHasItsEstimate) {
  const OpDefinition& op = find_op("rms_norm");
  const Row row = row_of(op, {{"tokens", 2}, {"hidden", 8}});
  const auto problem = op.make_problem(row, device::open_device("sim-sm90")->properties());
  const Step step{7, problem->capacity(), Fill::real, DeadRows::foreign};
  TensorSet tensors = problem->make_tensors();
  problem->fill(step, tensors);
  const auto& entry = *device::find_entry(device::builtin_implementation("sim-sm90"), "rms_norm");
  const Expectations all =
      problem->expect(step, tensors, to_reference(entry.numerics), entry.numerics);
  ASSERT_EQ(all.size(), 1u);
  const reference::Estimate* estimate = all.front().truth->estimate();
  ASSERT_NE(estimate, nullptr);
  EXPECT_EQ(estimate->rows, 2);
  EXPECT_EQ(estimate->columns, 8);
  EXPECT_EQ(all.front().stored->spec().name, "out");
  EXPECT_FALSE(compare(all.front()).passed()) << "zeros are not the norm of these rows";
}

}  // namespace expectation_test
}  // namespace plumb::cases
