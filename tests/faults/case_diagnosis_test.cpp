// SPDX-License-Identifier: Apache-2.0
//
// The diagnosis of failed cases of one op. A wrong kernel of the library is named from the values
// that it leaves, whatever process ran it. Other kernels are not mistaken for it.
#include "diagnosis/case_diagnosis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <plumb/ops/norm.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/sim/launch.h"
#include "diagnosis/misread_inputs.h"
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

// Name of the decode-step fault that is this kernel; "" if none is.
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

auto of_the_library() { return all_mutants() | std::views::filter(is_in_the_library); }

// Some mutants leave only NaN, from which nothing follows. No wrong name is given for any of them.
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

const std::map<std::string, std::set<std::string>> kLazyNames{
    {"compressed_eps_lost",
     {"compress_norm_rope_insert.eps.squared", "compress_norm_rope_insert.eps.zero"}},
    {"compressed_slots_request_0", {"compressed_slot_mapping.block_table.first_row"}},
    {"compressed_slots_table_packed", {"compressed_slot_mapping.block_table_row_stride.dense"}},
    // Not the same defect: the two act alike on the values of the mutant's case.
    {"compressed_state_by_batch_row", {"compress_norm_rope_insert.token_to_req.previous_column"}},
    {"compressed_states_of_unsaved_tokens", {"compress_norm_rope_insert.state_slot_mapping.zeros"}},
    {"partial_states_raw_with_ape_left_out",
     {"save_partial_states.ape.zeros", "save_partial_states.form.one_more"}},
    {"gather_keys_shuffle_ignored", {"cp_gather_indexer_k_quant_cache.shuffled.one_less"}},
    {"indexer_k_layout_not_shuffled", {"indexer_k_quant_and_cache.shuffled.one_less"}},
    {"mla_v32_scale_not_rounded", {"sparse_mla_decode.main_cache.scale_reading.one_less"}},
    {"mla_v32_scale_truncated", {"sparse_mla_decode.main_cache.scale_reading.one_more"}},
    {"mqa_schedule_last_entry_unset", {"paged_mqa_logits_metadata.schedule.last_row"}},
    {"paged_mqa_logits_shuffled_as_planar", {"fp8_paged_mqa_logits.shuffled.one_less"}},
    {"ragged_bound_inclusive", {"build_ragged_indices_from_dense.num_rows.one_more"}},
    {"swa_slot_0_is_padding", {"swa_decode_metadata.slot_mapping.one_less"}}};

// Other defects of the same ops, which the library does not have. None is mistaken for a fault of
// the library, unless the two have the same effect.
TEST(CaseDiagnosis, NamesNoFaultOfTheLibraryForAnother) {
  // compressed_state_blocks_packed and two faults of the library read windows of NaN alone.
  const std::set<std::string_view> the_same{"hc_head_without_eps", "mla_extra_in_main_dialect",
                                            "swa_invalid_row_never_cleared",
                                            "compressed_state_blocks_packed"};
  std::set<std::string_view> ops;
  for (const Mutant& mutant : of_the_library()) ops.insert(mutant.op);
  std::map<std::string, std::set<std::string>> named;
  int foreign = 0;
  for (const Mutant& mutant : all_mutants()) {
    const bool here =
        std::ranges::find(mutant.platforms, "sim-sm90") != std::ranges::end(mutant.platforms);
    if (!here || is_in_the_library(mutant) || !ops.contains(mutant.op)) continue;
    if (the_same.contains(mutant.name)) continue;
    const Diagnosis diagnosis = run_and_diagnose(mutant, "sim-sm90").diagnosis;
    // The name of a lazy kernel (plumb's own kernel with one added assumption, "op.member.kind")
    // may describe what the mutant does.
    for (const Explanation& one : diagnosis.named) {
      EXPECT_NE(one.name.find('.'), std::string::npos) << mutant.name << ": " << one.name;
      named[std::string(mutant.name)].insert(one.name);
    }
    ++foreign;
  }
  EXPECT_GE(foreign, 25);
  // Checked by hand: each mutant does what the lazy kernel's name says.
  EXPECT_EQ(named, kLazyNames);
}

// The kernel fails with waves of 64 and is diagnosed with waves of 32, which add in another order:
// as for the kernel of a plug-in or a card.
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
            "matches no fault of the library; each wrong row is 0.25 × the expected row");
  const std::string strides = text("q_kv_strides_ignored");
  EXPECT_NE(strides.find(".dense (ignores "), std::string::npos) << strides;
  EXPECT_EQ(text("indexer_q_scale_left_out"), "matches no fault of the library");
  EXPECT_EQ(text("rms_norm_wrong_from_row_1000"), "matches no fault of the library")
      << "that is only where";
}

// Lazy kernels (plumb's own with one added assumption) as if in a plug-in: correct values may
// differ in the last places.
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

// Results stored in another format of the same size, and results of which a few are one unit off.
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
    // Stores the value as fp16, rounded towards zero, if it is a normal number of fp16.
    const int exponent = static_cast<int>(wide >> 23 & 0xff) - 127;
    if (exponent < -14 || exponent > 15) return;
    bits = static_cast<std::uint16_t>((wide >> 16 & 0x8000) | (exponent + 15) << 10 |
                                      (wide >> 13 & 0x3ff));
  });
  EXPECT_TRUE(fp16.names("stored_as_fp16")) << text_of(fp16);
}

// Launchers of an op that does nothing, and of an op that runs twice.
plumb_status no_launch(const void*) { return PLUMB_OK; }
const device::OpEntry& rope() {
  return *device::find_entry(device::builtin_implementation("sim-sm90"), "inverse_rope");
}
plumb_status two_launches(const void* params) {
  rope().launch(params);
  return rope().launch(params);
}

plumb_status dense_tokens(const void* params) {
  auto p = *static_cast<const plumb_inverse_rope_params*>(params);
  p.x_token_stride = p.heads * 512;
  return rope().launch(&p);
}

// The case runs under the contract of the kernel, and so do the hypotheses.
TEST(CaseDiagnosis, HypothesesHaveTheContractOfTheKernel) {
  const Case& which = find_case("inverse_rope/slice_of_wider_rows/eager");
  device::OpEntry entry = rope();
  entry.launch = dense_tokens;
  entry.contract = "placement=copy";
  RunOptions options = on("sim-sm90");
  options.implementation = with_op_replaced({entry, {}});
  const CaseResult result = run_case(which, options);
  ASSERT_EQ(result.outcome, Outcome::failed);
  const Diagnosis diagnosis = diagnose_case(which, result, options);
  EXPECT_TRUE(diagnosis.names("inverse_rope.x_token_stride.dense")) << text_of(diagnosis);
}

// A failed case, and what other kernels would have stored instead.
class WrongResults {
 public:
  explicit WrongResults(const char* id) : which(find_case(id)) {
    device::OpEntry entry = own();
    entry.launch = no_launch;
    options.implementation = with_op_replaced({entry, {}});
    failed_ = run_case(which, options);
  }

  std::vector<MisreadInput> misread() const {
    std::vector<MisreadInput> all;
    for (const HostTensor& input : failed_.evidence->tensors.all()) {
      for (MisreadInput& one : misread_inputs(input)) all.push_back(std::move(one));
    }
    return all;
  }

  Diagnosis diagnosis_of(const MisreadInput& misread) const {
    const std::string& name = misread.seen.spec().name;
    const auto problem = make_problem(which, on("sim-sm90"), false);
    CaseEvidence wrong = *failed_.evidence;
    wrong.tensors.at(name) = misread.seen;
    wrong.tensors = run_once(*problem, own(), "sim-sm90", wrong);
    wrong.tensors.at(name) = failed_.evidence->tensors.at(name);
    CaseResult result = failed_;
    result.evidence = std::make_shared<CaseEvidence>(wrong);
    return diagnose_case(which, result, options);
  }

  const Case& which;
  RunOptions options = on("sim-sm90");

 private:
  const device::OpEntry& own() const {
    return *device::find_entry(device::builtin_implementation("sim-sm90"), which.op->name);
  }

  CaseResult failed_;
};

// A wrong way to read an input is named from the results that it leaves. Some leave the results of
// another one: a negated factor those of the other negated factor.
TEST(CaseDiagnosis, NamesMisreadInputs) {
  std::set<std::string> kinds;
  int all = 0, named = 0;
  for (const char* id :
       {"inverse_rope/ascending_positions/eager", "mhc_post/flash_two_tokens/eager",
        "top_k_per_row_decode/next_n_2/eager"}) {
    const WrongResults results(id);
    for (const MisreadInput& misread : results.misread()) {
      if (misread.may_leave && !misread.name.ends_with("as_int32")) continue;
      const Diagnosis diagnosis = results.diagnosis_of(misread);
      const std::string name = fmt::format("{}.{}", results.which.op->name, misread.name);
      if (diagnosis.names(name)) kinds.insert(name.substr(name.rfind('.') + 1));
      named += diagnosis.names(name);
      ++all;
      EXPECT_TRUE(diagnosis.named.empty() || diagnosis.named.front().match.is_exact()) << name;
    }
  }
  EXPECT_GE(all, 50);
  EXPECT_GE(named, 0.8 * all);
  EXPECT_EQ(kinds, (std::set<std::string>{"as_halves", "as_int32", "as_pairs", "first_column",
                                          "halves_swapped", "negated", "next_column", "next_row",
                                          "one_more", "ones", "previous_column", "previous_row",
                                          "second_half_negated", "transposed"}));
}

// A tensor that does not differ from what the wrong kernel sees has no such reading, outputs have
// none, and tensors in pieces none that take another row.
TEST(CaseDiagnosis, OnlyReadingsThatDifferAreTried) {
  HostTensor one({.name = "x", .dtype = Dtype::f32, .shape = {2, 2}});
  for (int i = 0; i < 4; ++i) one.data<float>()[i] = 1;
  std::set<std::string> names;
  for (const MisreadInput& misread : misread_inputs(one)) names.insert(misread.name);
  EXPECT_EQ(names, (std::set<std::string>{"x.negated", "x.one_more", "x.second_half_negated"}));
  HostTensor pieces(
      {.name = "x", .dtype = Dtype::f32, .shape = {2, 2}, .sparse = true, .placement = {0, 7}});
  for (int i = 0; i < 4; ++i) pieces.data<float>()[i] = static_cast<float>(i + 2);
  std::set<std::string> of_pieces;
  for (const MisreadInput& misread : misread_inputs(pieces)) of_pieces.insert(misread.name);
  EXPECT_TRUE(of_pieces.contains("x.halves_swapped"));
  EXPECT_FALSE(of_pieces.contains("x.next_row") || of_pieces.contains("x.transposed"));
  HostTensor output({.name = "x", .dtype = Dtype::f32, .shape = {2, 2}, .role = Role::output});
  EXPECT_TRUE(misread_inputs(output).empty());
}

TEST(CaseDiagnosis, NamesAScalarThatIsOneOff) {
  const std::pair<const char*, const char*> wrong[] = {
      {"swa_decode_metadata/decode_window_128/eager", "swa_decode_metadata.window.one_less"},
      {"swa_decode_metadata/decode_window_128/eager", "swa_decode_metadata.window.one_more"},
      {"rms_norm/q_lora/eager", "rms_norm.eps.one"},
      {"rms_norm/q_lora/eager", "rms_norm.eps.squared"}};
  for (const auto& [id, name] : wrong) {
    const Case& which = find_case(id);
    const std::vector<LazyKernel> all = near_values(which, "sim-sm90");
    const auto kernel = std::ranges::find(all, std::string(name), &LazyKernel::name);
    ASSERT_NE(kernel, all.end()) << name;
    const CaseResult result = run_case(which, with_lazy_kernel(on("sim-sm90"), *kernel, which));
    ASSERT_EQ(result.outcome, Outcome::failed) << name;
    const Diagnosis diagnosis = diagnose_case(which, result, on("sim-sm90"));
    EXPECT_TRUE(std::ranges::count(diagnosis.named, std::string(name), &Explanation::name) == 1)
        << text_of(diagnosis);
  }
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

// The values depend on the order of threads and have no pattern, so the cause is named instead.
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
