// SPDX-License-Identifier: Apache-2.0
//
// Tests that bytes of packed scales that may hold anything are not compared between two launches: a
// kernel that writes bytes one by one leaves them as they are.
#include <gtest/gtest.h>

#include <memory>

#include "cases/tables/problem.h"
#include "device/device.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {

OpDefinition define_per_token_group_quant_fp8();

namespace group_filler_test {

// Three tokens with seven groups each, which take two words. `first`: of the last word of token 1.
struct PackedScales {
  OpDefinition op = define_per_token_group_quant_fp8();
  std::unique_ptr<Problem> problem;
  TensorSet tensors;
  std::byte* first;

  PackedScales(const std::string& filler, const std::string& layout)
      : problem(op.make_problem(
            row_of(op, {{"tokens", 3}, {"columns", 896}},
                   {{"scales", "packed_ue8m0"}, {"filler", filler}, {"layout", layout}}),
            device::open_device("sim-sm90")->properties())),
        tensors(problem->make_tensors()) {
    HostTensor& scales = tensors.at("scales");
    first = reinterpret_cast<std::byte*>(scales.row<std::int32_t>(1) + 1);
  }

  Bytes compared() const {
    const HostTensor& scales = tensors.at("scales");
    const auto form = problem->canonical(tensors, scales.spec(), {});
    return (form ? *form : scales).bytes();
  }
  bool shows_a_change_of(int byte) {
    const Bytes before = compared();
    first[byte] ^= std::byte{0x55};
    return compared() != before;
  }
};

TEST(GroupFiller, AnyBytesAreNotCompared) {
  for (const char* layout : {"row_major", "column_major"}) {
    PackedScales scales("any", layout);
    EXPECT_FALSE(scales.shows_a_change_of(3)) << layout;
    for (const int of_group : {0, 1, 2}) EXPECT_TRUE(scales.shows_a_change_of(of_group)) << layout;
  }
}

TEST(GroupFiller, PromisedBytesAreCompared) {
  PackedScales scales("127", "column_major");
  EXPECT_TRUE(scales.shows_a_change_of(3));
}

}  // namespace group_filler_test
}  // namespace plumb::cases
