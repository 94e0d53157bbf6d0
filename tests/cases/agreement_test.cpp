// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/rows_and_cases.h"

namespace plumb::cases {

namespace agreement_test {

TEST(Agreement, StepsBetweenFloatsAreThoseOfTheirFormat) {
  EXPECT_EQ(steps_between(Dtype::bf16, 1.0, 1.0078125), 1);
  EXPECT_EQ(steps_between(Dtype::f32, 1.0, 1.0078125), 1 << 16);
  EXPECT_EQ(steps_between(Dtype::f32, -0.0, 0.0), 0);
  EXPECT_EQ(steps_between(Dtype::f32, -0x1p-149, 0x1p-149), 2);
  EXPECT_EQ(steps_between(Dtype::i32, -3, 4), 7);
  EXPECT_EQ(steps_between(Dtype::f32, std::nan(""), std::nan("")), 0);
  EXPECT_TRUE(std::isinf(steps_between(Dtype::f32, std::nan(""), 1)));
}

TEST(Agreement, APlatformAgreesWithItself) {
  for (const TensorAgreement& tensor :
       compare_platforms(find_case("mhc_pre/flash_two_tokens/eager"), "sim-gfx942", "sim-gfx942")) {
    EXPECT_GT(tensor.elements, 0);
    EXPECT_EQ(tensor.equal, tensor.elements) << tensor.where;
    EXPECT_EQ(tensor.where, "");
  }
}

// The two platforms have waves of 32 and 64, which add in different orders.
TEST(Agreement, NamesTheElementThatIsFarthestOff) {
  const auto tensors =
      compare_platforms(find_case("mhc_pre/flash_two_tokens/eager"), "sim-sm90", "sim-gfx942");
  const auto post = std::find_if(tensors.begin(), tensors.end(),
                                 [](const TensorAgreement& t) { return t.tensor == "post"; });
  ASSERT_NE(post, tensors.end());
  EXPECT_EQ(post->elements, 8);
  EXPECT_LT(post->equal, post->elements);
  EXPECT_GE(post->distance, 1);
  EXPECT_TRUE(post->where.starts_with("post [")) << post->where;
}

// The caches of sim-gfx942 hold e4m3fnuz and those of sim-sm90 e4m3fn, so the inputs differ and
// nothing can be compared.
TEST(Agreement, SaysNothingOfOtherInputs) {
  const Case& which = find_case("sparse_mla_decode/v4_pro_c4a/eager");
  EXPECT_TRUE(compare_platforms(which, "sim-sm90", "sim-gfx942").empty());
  EXPECT_FALSE(compare_platforms(which, "sim-sm90", "sim-gfx950").empty());
}

}  // namespace agreement_test

}  // namespace plumb::cases
