// SPDX-License-Identifier: Apache-2.0
//
// A failed case names the declarations under which it is right, and none for kernels that are wrong
// under all. tests/faults/faults_test.cpp has the mutants for the latter.
#include "cases/studies/right_under.h"

#include <gtest/gtest.h>
#include <plumb/ops/indexer.h>
#include <plumb/ops/norm.h>
#include <plumb/ops/sparse_mla.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "faults/replaced_op.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace right_under_test {

const device::OpEntry& own(std::string_view op) {
  return *device::find_entry(device::builtin_implementation("sim-sm90"), op);
}

RunOptions with(const device::OpEntry& entry) {
  RunOptions options = on("sim-sm90");
  options.implementation = with_op_replaced({entry, {}});
  return options;
}

std::vector<Alternative> found(const std::string& id, const RunOptions& options) {
  const Case& which = find_case(id);
  const CaseResult result = run_case(which, options);
  EXPECT_EQ(result.outcome, Outcome::failed) << id;
  return right_under(which, result, options);
}
std::string said(const std::string& id, const RunOptions& options) {
  return right_if(found(id, options));
}

// The indexer's query kernel with a floor that depends on the requested floor, or ignores it.
template <float (*floor_of)(float)>
RunOptions with_floor() {
  device::OpEntry entry = own("indexer_q_rope_quant");
  entry.launch = [](const void* given) {
    auto params = *static_cast<const plumb_indexer_q_rope_quant_params*>(given);
    params.amax_floor = floor_of(params.amax_floor);
    return own("indexer_q_rope_quant").launch(&params);
  };
  return with(entry);
}
float low(float) { return 1e-10F; }
float between(float) { return 2e-5F; }
float other(float asked) { return asked < 1e-5F ? 1e-4F : 1e-10F; }

TEST(RightUnder, NamesTheValueOfAKernelThatHasOne) {
  EXPECT_EQ(said("indexer_q_rope_quant/v4/eager", with_floor<low>()),
            "right if floor = 1e-10: declare it");
}

TEST(RightUnder, NamesNoValueThatTheKernelHasNot) {
  EXPECT_EQ(said("indexer_q_rope_quant/v4/eager", with_floor<between>()), "");
}

// The kernel's result is right under the other value, but no longer if that value is declared,
// because the kernel then replaces that value too.
TEST(RightUnder, NamesNoValueForAKernelThatMistakesItsParameters) {
  EXPECT_EQ(said("indexer_q_rope_quant/v4/eager", with_floor<other>()), "");
}

TEST(RightUnder, NamesOutputsThatAKernelDoesNotHave) {
  device::OpEntry decode = own("sparse_mla_decode"), prefill = own("sparse_mla_prefill");
  decode.launch = [](const void* given) {
    auto params = *static_cast<const plumb_sparse_mla_decode_params*>(given);
    params.lse = nullptr;
    return own("sparse_mla_decode").launch(&params);
  };
  prefill.launch = [](const void* given) {
    auto params = *static_cast<const plumb_sparse_mla_prefill_params*>(given);
    params.lse = params.max_logits = nullptr;
    return own("sparse_mla_prefill").launch(&params);
  };
  for (const char* id :
       {"sparse_mla_decode/heads_64/eager", "sparse_mla_decode/heads_64/full_graph"}) {
    EXPECT_EQ(said(id, with(decode)), "right if outputs = out: declare it") << id;
  }
  EXPECT_EQ(said("sparse_mla_prefill/v4_flash/eager", with(prefill)),
            "right if outputs = out: declare it");
}

TEST(RightUnder, NamesThePlanThatAKernelDoesNotMake) {
  device::OpEntry decode = own("sparse_mla_decode");
  decode.plan = nullptr;
  decode.launch = [](const void* given) {
    auto params = *static_cast<const plumb_sparse_mla_decode_params*>(given);
    params.plan = nullptr;
    params.partial_out = params.partial_lse = nullptr;
    return own("sparse_mla_decode").launch(&params);
  };
  EXPECT_EQ(said("sparse_mla_decode/heads_64/eager", with(decode)),
            "right if plan = none: declare it");
}

// In this case no value makes the result for a skipped token right. It passes only under a value
// whose cases have no skipped tokens.
TEST(PassesUnder, NamesTheValueWhoseCasesAreOthers) {
  RunOptions never = on("sim-sm90");
  never.launched_under = "skip=never";
  const Case& which = find_case("quantize_and_insert_k_cache/far_blocks/full_graph");
  const CaseResult result = run_case(which, never);
  EXPECT_EQ(right_if(right_under(which, result, never)), "");
  EXPECT_EQ(passes_if(passes_under(which, result, never)),
            "declared as skip = never it passes, because the wrong values are then not tested");
}

// After an illegal address a real card answers no further calls.
TEST(PassesUnder, AsksNothingOfARealDeviceThatFailed) {
  CaseResult result;
  result.outcome = Outcome::failed;
  result.failures.push_back({.context = "here", .lines = {"illegal address"}, .kind = "other"});
  RunOptions real = on("cuda-sm90");
  real.implementation = [](std::string_view, bool) -> const device::Implementation& {
    throw std::logic_error("it was asked");
  };
  const Case& which = find_case("quantize_and_insert_k_cache/far_blocks/eager");
  EXPECT_EQ(passes_under(which, result, real), std::vector<Alternative>{});
  real.platform = "sim-sm90";
  EXPECT_THROW(passes_under(which, result, real), std::logic_error);
}

TEST(PassesUnder, NamesNothingForAKernelThatIsWrongUnderAll) {
  device::OpEntry entry = own("quantize_and_insert_k_cache");
  entry.launch = [](const void*) { return PLUMB_OK; };
  const RunOptions nothing = with(entry);
  const Case& which = find_case("quantize_and_insert_k_cache/far_blocks/eager");
  const CaseResult result = run_case(which, nothing);
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_EQ(passes_if(passes_under(which, result, nothing)), "");
}

// The result of a run with goldens, of which the last run had other bits.
TEST(PassesUnder, NamesNothingForACaseThatPassesAsItIs) {
  const Case& which = find_case("quantize_and_insert_k_cache/far_blocks/eager");
  const RunOptions options = on("sim-sm90");
  CaseResult result = run_case(which, options);
  result.outcome = Outcome::failed;
  result.failures.push_back({.context = "here", .lines = {"golden: none"}, .kind = "golden"});
  EXPECT_EQ(passes_if(passes_under(which, result, options)), "");
}

TEST(RightUnder, NamesSeveralValuesTogether) {
  RunOptions helper = on("sim-sm90");
  helper.launched_under = "floor=1e-4 ties=toward_zero negative_zero=dropped";
  std::vector<std::string> texts;
  for (const Case& which : cases_of(find_op("mxfp4_quant"))) {
    if (which.scenario->name != "eager") continue;
    const CaseResult result = run_case(which, helper);
    for (const Alternative& one : right_under(which, result, helper)) {
      texts.push_back(one.contract);
    }
  }
  EXPECT_NE(std::ranges::find(texts, helper.launched_under), texts.end());
}

TEST(RightUnder, SaysNothingWhereNoValueIsWrong) {
  device::OpEntry entry = own("rms_norm");
  entry.launch = [](const void*) { return PLUMB_INVALID_ARGUMENT; };
  EXPECT_EQ(said("rms_norm/v4_pro_hidden/eager", with(entry)), "");
}

// A declaration that promises less does not excuse writing elements that it leaves out.
TEST(RightUnder, WantsWhatIsLeftOutToBeUntouched) {
  const HostTensor stored({.name = "out", .shape = {2, 3}, .role = Role::output});
  const auto promising = [&](RowMask rows, ColumnRanges columns) {
    Expectation one = expect_bits(stored, stored, std::move(rows), "differs");
    one.columns = std::move(columns);
    return Expectations{one};
  };
  const Expectations all = promising({}, {}), first_row = promising({true, false}, {});
  const Expectations narrow = promising({}, {{0, 3}, {1, 3}});
  const auto leaves_alone = [&](const Expectations& other, bool last_row, bool first_of_it) {
    return leaves_rest_alone(all, other,
                             [&](const HostTensor&, std::int64_t row, std::int64_t column) {
                               return row == 1 && (column == 0 ? first_of_it : last_row);
                             });
  };
  EXPECT_TRUE(leaves_alone(all, false, false));
  EXPECT_TRUE(leaves_alone(first_row, true, true));
  EXPECT_FALSE(leaves_alone(first_row, true, false));
  EXPECT_TRUE(leaves_alone(narrow, false, true));
  EXPECT_FALSE(leaves_alone(narrow, true, false));
  EXPECT_FALSE(leaves_alone({}, true, true)) << "nothing is promised of the first row either";
}

// A matrix unit truncates sums. A kernel that uses one may declare by mistake that it rounds.
TEST(RightUnder, TriesTheUnitThatAddsUpLongProducts) {
  const Case& which = find_case("sparse_mla_decode/heads_64/eager");
  plumb_numerics declared = own("sparse_mla_decode").numerics;
  const auto rounds = [&](const Alternative& one) {
    return redeclared(declared, one.numerics).sum_unit == PLUMB_UNIT_FP32;
  };
  const auto truncates = [&](const Alternative& one) { return !rounds(one); };
  EXPECT_EQ(right_if(right_alternatives(*which.op, which.row, declared, truncates)),
            "right if sum_unit = sm90_bf16: declare it, but only if the kernel computes that way");
  declared.sum_unit = PLUMB_UNIT_SM90_FP8;
  EXPECT_EQ(right_if(right_alternatives(*which.op, which.row, declared, rounds)), "")
      << "a wider unit is not replaced by a narrower one";
}

// A norm that is wrong in every second launch. `deterministic`: whether it promises equal bits.
RunOptions now_and_then(bool deterministic) {
  device::OpEntry entry = own("rms_norm");
  entry.numerics.deterministic = deterministic;
  entry.launch = [](const void* given) {
    static int launches = 0;
    auto params = *static_cast<const plumb_rms_norm_params*>(given);
    if (launches++ % 2 == 1) params.eps *= 1e4F;
    return own("rms_norm").launch(&params);
  };
  RunOptions options = with(entry);
  options.foreign = true;  // only one entry's launches are counted: no checked kernels
  return options;
}

TEST(RightUnder, NeedsEveryLaunchToBeRightWithoutEqualBits) {
  EXPECT_EQ(said("rms_norm/v4_pro_hidden/eager", now_and_then(true)), "");
  EXPECT_EQ(said("rms_norm/v4_pro_hidden/eager", now_and_then(false)), "");
}

}  // namespace right_under_test
}  // namespace plumb::cases
