// SPDX-License-Identifier: Apache-2.0
//
// A call counts as known to be right only if everything that its verdict depends on is equal.
#include "decode/recording/right_calls.h"

#include <gtest/gtest.h>

#include "device/device.h"

namespace plumb::cases {
namespace right_calls_test {

const device::Properties& sm90() {
  static const device::Properties properties = device::open_device("sim-sm90")->properties();
  return properties;
}

JudgedCall some_call() {
  JudgedCall call{.op = "rms_norm"};
  call.row.integers["hidden"] = 8;
  call.row.words["rounding"] = "once";
  call.row.reals["eps"] = 1e-6F;
  return call;
}

TensorSet some_tensors() {
  TensorSet tensors;
  tensors.add(HostTensor({.name = "x", .dtype = Dtype::bf16, .shape = {2, 8}}));
  tensors.add(
      HostTensor({.name = "out", .dtype = Dtype::bf16, .shape = {2, 8}, .role = Role::output}));
  return tensors;
}

TEST(RightCalls, KnowACallByEverythingThatItsVerdictDependsOn) {
  RightCalls calls;
  const auto has = [&](const JudgedCall& call, const TensorSet& tensors,
                       const device::Properties& properties) {
    return calls.has(RightCalls::digest(call, tensors, properties));
  };
  const JudgedCall call = some_call();
  const TensorSet tensors = some_tensors();
  EXPECT_FALSE(has(call, tensors, sm90()));
  calls.add(RightCalls::digest(call, tensors, sm90()));
  EXPECT_TRUE(has(some_call(), some_tensors(), sm90()));

  for (const char* name : {"x", "out"}) {
    TensorSet other = some_tensors();
    other.at(name).bytes().back() = std::byte{1};
    EXPECT_FALSE(has(call, other, sm90())) << name;
  }
  JudgedCall other = some_call();
  other.op = "fused_add_rms_norm";
  EXPECT_FALSE(has(other, tensors, sm90()));
  other = some_call();
  other.row.integers["hidden"] = 9;
  EXPECT_FALSE(has(other, tensors, sm90()));
  other = some_call();
  other.row.words["rounding"] = "twice";
  EXPECT_FALSE(has(other, tensors, sm90()));
  other = some_call();
  other.row.reals["eps"] = 1e-5F;
  EXPECT_FALSE(has(other, tensors, sm90()));
  other = some_call();
  other.declared.function_ulp = 1;
  EXPECT_FALSE(has(other, tensors, sm90()));
  EXPECT_FALSE(has(call, tensors, device::open_device("sim-gfx942")->properties()));
}

// Equal bytes in another shape are another call.
TEST(RightCalls, KnowACallByItsShapes) {
  RightCalls calls;
  TensorSet wide, tall;
  wide.add(HostTensor({.name = "x", .dtype = Dtype::bf16, .shape = {2, 8}}));
  tall.add(HostTensor({.name = "x", .dtype = Dtype::bf16, .shape = {8, 2}}));
  calls.add(RightCalls::digest(some_call(), wide, sm90()));
  EXPECT_FALSE(calls.has(RightCalls::digest(some_call(), tall, sm90())));
}

}  // namespace right_calls_test
}  // namespace plumb::cases
