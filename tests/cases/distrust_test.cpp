// SPDX-License-Identifier: Apache-2.0
//
// A case that could not have failed is untrusted.
#include <gtest/gtest.h>

#include <string>

#include "cases/drivers/run.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace distrust_test {

CaseResult result_with(float function_ulp, const std::string& id) {
  RunOptions options = on("sim-sm90");
  options.redeclare = [function_ulp](plumb_numerics& n) { n.function_ulp = function_ulp; };
  return run_case(find_case(id), options);
}

TEST(Distrust, ErrorsThatAreDeclaredAsLargeAsTheValuesAreUntrusted) {
  for (const char* id : {"rms_norm/v4_pro_hidden/eager", "rms_norm/hidden_257/full_graph"}) {
    EXPECT_EQ(result_with(2, id).outcome, Outcome::passed) << id;
    const CaseResult absurd = result_with(1e12F, id);
    EXPECT_EQ(absurd.outcome, Outcome::untrusted) << id;
    EXPECT_EQ(absurd.reason,
              "out: the declared errors are as large as the values (zeros would pass)");
  }
}

}  // namespace distrust_test
}  // namespace plumb::cases
