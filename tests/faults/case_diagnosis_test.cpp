// SPDX-License-Identifier: Apache-2.0
//
// What a failed case of one op looks like: a wrong kernel of the library is named by the values
// that it leaves, whoever ran it; others are not taken for it.
#include "diagnosis/case_diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "device/sim/launch.h"
#include "diagnosis/op_run.h"
#include "faults/faults.h"
#include "faults/lazy/lazy_kernels.h"
#include "faults/replaced_op.h"
#include "reference/formats/bfloat16.h"
#include "tests/support/rows_and_cases.h"
#include "tools/report.h"

namespace plumb::cases {

namespace case_diagnosis_test {

const Mutant& mutant_of(const std::string& name) {
  const auto& all = all_mutants();
  return *std::find_if(all.begin(), all.end(), [&](const Mutant& m) { return m.name == name; });
}

struct Diagnosed {
  CaseResult result;
  Diagnosis diagnosis;
};
Diagnosed run_and_diagnose(const Mutant& mutant, const std::string& platform) {
  const Case& which = find_case(std::string(mutant.case_id));
  const RunOptions options = with_mutant(on(platform), mutant);
  Diagnosed all{run_case(which, options), {}};
  all.diagnosis = diagnose_case(which, all.result, options);
  return all;
}

// The fault of a decode step that this kernel is; "": of none.
std::string fault_of(const Mutant& mutant) {
  for (const DecodeFault& fault : all_decode_faults()) {
    const DecodeSetup with = fault.inject({.platform = "sim-sm90"});
    if (!with.implementation || fault.broken != mutant.op) continue;
    const auto* entry = device::find_entry(with.implementation("sim-sm90", false), mutant.op);
    if (entry != nullptr && entry->launch == mutant.entry.launch) return fault.name;
  }
  return "";
}
bool is_in_the_library(const Mutant& mutant) { return !fault_of(mutant).empty(); }

std::vector<Mutant> of_the_library() {
  std::vector<Mutant> some;
  std::copy_if(all_mutants().begin(), all_mutants().end(), std::back_inserter(some),
               is_in_the_library);
  return some;
}

// Some leave nothing but NaN, of which nothing follows; no other is named for any of them.
TEST(CaseDiagnosis, NamesTheKernelsOfTheLibrary) {
  for (const char* platform : {"sim-sm90", "sim-gfx942"}) {
    int all = 0, named = 0;
    for (const Mutant& mutant : of_the_library()) {
      const auto [result, diagnosis] = run_and_diagnose(mutant, platform);
      EXPECT_EQ(result.outcome, Outcome::failed) << mutant.name;
      const bool right = diagnosis.names(fault_of(mutant));
      EXPECT_TRUE(right || diagnosis.named.empty()) << mutant.name << ": " << text_of(diagnosis);
      named += right;
      ++all;
    }
    EXPECT_GE(all, 20);
    EXPECT_GE(named, 0.8 * all) << platform;
  }
}

const std::map<std::string, std::set<std::string>> kLazyNames{};

// Other defects of the same ops, which the library does not have: none is taken for one of its own,
// but for those that come to the same.
TEST(CaseDiagnosis, NamesNoFaultOfTheLibraryForAnother) {
  const std::set<std::string_view> the_same{"hc_head_without_eps", "mla_extra_in_main_dialect",
                                            "swa_invalid_row_never_cleared"};
  std::set<std::string_view> ops;
  for (const Mutant& mutant : of_the_library()) ops.insert(mutant.op);
  int foreign = 0;
  std::map<std::string, std::set<std::string>> named;
  for (const Mutant& mutant : all_mutants()) {
    const bool here = std::find(mutant.platforms.begin(), mutant.platforms.end(), "sim-sm90") !=
                      mutant.platforms.end();
    if (!here || is_in_the_library(mutant) || !ops.contains(mutant.op)) continue;
    if (the_same.contains(mutant.name)) continue;
    const Diagnosis diagnosis = run_and_diagnose(mutant, "sim-sm90").diagnosis;
    // A lazy kernel ("op.member.kind") says what the kernel did, whatever the mutant is called.
    for (const Explanation& one : diagnosis.named) {
      EXPECT_NE(one.name.find('.'), std::string::npos) << mutant.name << ": " << one.name;
      named[std::string(mutant.name)].insert(one.name);
    }
    ++foreign;
  }
  EXPECT_GE(foreign, 25);
  // Each was looked at: the kernel does what its name says.
  EXPECT_EQ(named, kLazyNames);
}

// As a plug-in's or a card's: waves of 64 add in another order than those of 32.
TEST(CaseDiagnosis, NamesAKernelOfADeviceThatRoundsElsewhere) {
  for (const char* name : {"mla_sink_per_split", "hc_head_mean_square_over_hidden"}) {
    const Mutant& mutant = mutant_of(name);
    const Case& which = find_case(std::string(mutant.case_id));
    const CaseResult result = run_case(which, with_mutant(on("sim-gfx950"), mutant));
    ASSERT_EQ(result.outcome, Outcome::failed);
    RunOptions options = on("sim-sm90");
    options.foreign = true;
    const Diagnosis diagnosis = diagnose_case(which, result, options);
    EXPECT_TRUE(diagnosis.names(name)) << text_of(diagnosis);
  }
}

TEST(CaseDiagnosis, KnowsResultsThatAreCutOff) {
  const Diagnosis diagnosis =
      run_and_diagnose(mutant_of("rms_norm_truncates"), "sim-sm90").diagnosis;
  EXPECT_TRUE(diagnosis.names("truncated")) << text_of(diagnosis);
}

TEST(CaseDiagnosis, KnowsWhatTheJudgeHasRecognised) {
  const auto text = [](const char* mutant) {
    return text_of(run_and_diagnose(mutant_of(mutant), "sim-sm90").diagnosis);
  };
  EXPECT_EQ(text("normalize_scales_halved"),
            "matches no fault of the library; each wrong row is 0.25 of what is expected");
  const std::string strides = text("q_kv_strides_ignored");
  EXPECT_NE(strides.find(".dense (ignores "), std::string::npos) << strides;
  EXPECT_EQ(text("indexer_q_scale_left_out"), "no known pattern");
  EXPECT_EQ(text("rms_norm_wrong_from_row_1000"), "no known pattern") << "that is only where";
}

// Lazy kernels as plug-ins have them: values that differ in the last places.
TEST(CaseDiagnosis, NamesALazyKernel) {
  const Case& which = find_case("rms_norm/q_lora/eager");
  for (const char* name : {"rms_norm.x_row_stride.dense", "rms_norm.out.last_row",
                           "rms_norm.weight.absent", "rms_norm.x.first_row"}) {
    const std::vector<LazyKernel> all = lazy_kernels(*which.op);
    const auto kernel = std::ranges::find(all, std::string(name), &LazyKernel::name);
    ASSERT_NE(kernel, all.end()) << name;
    const CaseResult result = run_case(which, with_lazy_kernel(on("sim-sm90"), *kernel, which));
    ASSERT_EQ(result.outcome, Outcome::failed) << name;
    RunOptions foreign = on("sim-sm90");
    foreign.foreign = true;
    const Diagnosis diagnosis = diagnose_case(which, result, foreign);
    ASSERT_FALSE(diagnosis.named.empty()) << name;
    EXPECT_EQ(diagnosis.named.front().name, name) << text_of(diagnosis);
  }
}

// Results that are stored in another format of the same size, and a few that are one unit off.
TEST(CaseDiagnosis, KnowsFp16AndNotEverySmallErrorForTruncation) {
  const Case& which = find_case("rms_norm/v4_pro_hidden/eager");
  const auto diagnosis = [&](void (*spoil)(std::uint16_t& bits, std::int64_t i)) {
    const Mutant& mutant = mutant_of("rms_norm_truncates");
    CaseResult result = run_case(which, with_mutant(on("sim-sm90"), mutant));
    EXPECT_TRUE(result.evidence);
    CaseEvidence evidence = *result.evidence;
    std::unique_ptr<Problem> problem = make_problem(which, on("sim-sm90"), false);
    const auto& own = *device::find_entry(device::builtin_implementation("sim-sm90"), "rms_norm");
    evidence.tensors = run_once(*problem, own, "sim-sm90", evidence);
    HostTensor& out = evidence.tensors.at("out");
    for (std::int64_t i = 0; i < out.extent(); ++i) spoil(out.data<std::uint16_t>()[i], i);
    result.evidence = std::make_shared<CaseEvidence>(evidence);
    return diagnose_case(which, result, on("sim-sm90"));
  };
  const Diagnosis few = diagnosis([](std::uint16_t& bits, std::int64_t i) {
    if (i % 50 == 0 && (bits & 0x7fff) > 1) --bits;
  });
  EXPECT_TRUE(few.named.empty()) << text_of(few);
  // A factor that moves most results by one unit toward zero.
  const Diagnosis shrunk = diagnosis([](std::uint16_t& bits, std::int64_t) {
    bits = reference::encode_bf16(reference::decode_bf16(bits) * 0.996);
  });
  EXPECT_FALSE(shrunk.names("truncated")) << text_of(shrunk);
  const Diagnosis fp16 = diagnosis([](std::uint16_t& bits, std::int64_t) {
    const std::uint32_t wide = std::uint32_t{bits} << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    // Rounded towards zero, normal numbers of fp16 alone.
    const int exponent = static_cast<int>(wide >> 23 & 0xff) - 127;
    if (exponent < -14 || exponent > 15) return;
    bits = static_cast<std::uint16_t>((wide >> 16 & 0x8000) | (exponent + 15) << 10 |
                                      (wide >> 13 & 0x3ff));
  });
  EXPECT_TRUE(fp16.names("stored_as_fp16")) << text_of(fp16);
}

// An op that does nothing, and one that does all twice.
plumb_status no_launch(const void*) { return PLUMB_OK; }
const device::OpEntry& rope() {
  return *device::find_entry(device::builtin_implementation("sim-sm90"), "inverse_rope");
}
plumb_status two_launches(const void* params) {
  rope().launch(params);
  return rope().launch(params);
}

TEST(CaseDiagnosis, KnowsAnOpThatIsNotAppliedOrTwice) {
  const Case& which = find_case("inverse_rope/ascending_positions/eager");
  const auto diagnosis = [&](plumb_status (*launch)(const void*)) {
    device::OpEntry entry = rope();
    entry.launch = launch;
    RunOptions options = on("sim-sm90");
    options.implementation = with_op_replaced({entry, {}});
    return diagnose_case(which, run_case(which, options), options);
  };
  EXPECT_TRUE(diagnosis(no_launch).names("not_applied")) << text_of(diagnosis(no_launch));
  EXPECT_TRUE(diagnosis(two_launches).names("applied_twice")) << text_of(diagnosis(two_launches));
}

// Whatever values the threads leave: which of them comes first is no pattern of values.
TEST(CaseDiagnosis, AMissingBarrierIsExplainedByWhatItIs) {
  const Case& which = find_case("rms_norm/v4_pro_hidden/eager");
  device::sim::reset_executed_barriers();
  run_case(which, on("sim-sm90"));
  const std::vector<std::string> barriers = device::sim::executed_barriers();
  ASSERT_FALSE(barriers.empty());
  for (const std::string& barrier : barriers) {
    RunOptions options = on("sim-sm90");
    options.disabled_barriers = {barrier};
    const CaseResult result = run_case(which, options);
    ASSERT_EQ(result.outcome, Outcome::failed) << barrier;
    const std::string text = text_of(diagnose_case(which, result, options));
    EXPECT_NE(text.find("barrier"), std::string::npos) << barrier << ": " << text;
  }
}

TEST(CaseDiagnosis, IsPartOfTheReport) {
  const Mutant& mutant = mutant_of("top_k_pads_with_zero");
  auto [result, diagnosis] = run_and_diagnose(mutant, "sim-sm90");
  result.diagnosis = text_of(diagnosis);
  const std::string report = tools::failure_text({result, {}, {}, {}, {}}, {});
  EXPECT_NE(report.find("\n      looks like: top_k_pads_with_zero ("), std::string::npos) << report;
  EXPECT_NE(tools::to_json_line({result, {}, {}, {}, {}}).find("\"diagnosis\":\"looks like: "),
            std::string::npos);
}

}  // namespace case_diagnosis_test

}  // namespace plumb::cases
