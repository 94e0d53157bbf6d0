// SPDX-License-Identifier: Apache-2.0
//
// Which parameters `plumb bisect case` changes in a case, which it leaves alone, and how candidates
// (smaller cases) are spelled.
#include "bisect/cases/case_subject.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "decode/schedule/any_case.h"

namespace plumb::bisect {

namespace case_subject_test {

using Texts = std::vector<std::string>;

std::vector<cases::AnyCase> all_of(const std::string& op) {
  auto all = cases::cases_of_all_kinds();
  std::erase_if(all, [&](const cases::AnyCase& one) { return one.op() != op; });
  return all;
}

CaseSubject subject_of(const std::string& id, const Texts& settings, Question run = {}) {
  const auto all = all_of(id.substr(0, id.find('/')));
  cases::AnyCase which = *std::find_if(all.begin(), all.end(),
                                       [&](const cases::AnyCase& one) { return one.id() == id; });
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    which.set_parameter(setting.substr(0, equals), setting.substr(equals + 1));
  }
  run.platform = "sim-sm90";
  return CaseSubject(which, all, run);
}

Candidate changed(Candidate candidate, const std::string& name, const std::string& value) {
  candidate.at(name) = value;
  return candidate;
}

const Knob* find(const CaseSubject& subject, const std::string& name) {
  const auto& knobs = subject.subject().knobs;
  const auto found =
      std::find_if(knobs.begin(), knobs.end(), [&](const Knob& one) { return one.name == name; });
  return found == knobs.end() ? nullptr : &*found;
}

TEST(CaseSubjects, SayWhatIsOtherThanInTheFile) {
  const CaseSubject subject =
      subject_of("rms_norm/v4_pro_hidden/full_graph", {"tokens=3", "rounding=twice"});
  const Question start = subject.question(subject.start());
  EXPECT_EQ(start.which, "rms_norm/v4_pro_hidden/full_graph");
  EXPECT_EQ(start.settings, (Texts{"tokens=3", "rounding=twice"}));
  const Candidate eager = changed(subject.start(), "scenario", "eager");
  EXPECT_EQ(subject.question(eager).which, "rms_norm/v4_pro_hidden/eager");
  EXPECT_EQ(subject.question(changed(eager, "rounding", "")).settings, (Texts{"tokens=3"}));
}

// With one column most defects look alike, and without a weight a wrong weight cannot show.
TEST(CaseSubjects, StayAwayFromDegenerateShapes) {
  const CaseSubject wide = subject_of("rms_norm/v4_pro_hidden/eager", {});
  EXPECT_EQ(find(wide, "hidden")->plainest(), "8");
  EXPECT_EQ(find(wide, "weight")->plainest(), "1");
  const CaseSubject narrow = subject_of("rms_norm/hidden_1/eager", {"weight=0"});
  EXPECT_EQ(find(narrow, "hidden")->plainest(), "1");
  EXPECT_EQ(find(narrow, "weight")->words, (Texts{"1", "0"}));
}

TEST(CaseSubjects, KeepColumnsAndElementsOfOutputs) {
  const CaseSubject quantised = subject_of("per_token_group_quant_fp8/v4_pro_hidden/eager", {});
  const auto with = [](const CaseSubject& subject, const Texts& settings) {
    Candidate candidate = subject.start();
    for (const std::string& one : settings) {
      candidate.at(one.substr(0, one.find('='))) = one.substr(one.find('=') + 1);
    }
    return subject.is_possible(candidate);
  };
  EXPECT_TRUE(with(quantised, {"columns=8", "group=8"}));
  EXPECT_FALSE(with(quantised, {"columns=4", "group=4"}));
  EXPECT_FALSE(with(quantised, {"tokens=0"}));
}

// The least number of an exponent is an extreme, not the plainest value.
TEST(CaseSubjects, TakeTheDefaultOfAValueForItsPlainest) {
  const CaseSubject subject = subject_of("mhc_pre/one_token/eager", {"post_mult=7"});
  EXPECT_EQ(find(subject, "post_mult")->words, (Texts{"2", "7"}));
  EXPECT_EQ(find(subject, "rms_eps_exponent")->plainest(), "6");
}

// A factor is no size: its least value is not the plainest.
TEST(CaseSubjects, LeaveAFactorAtItsDefault) {
  EXPECT_EQ(find(subject_of("hash_routing/v4_flash/eager", {}), "scale_permille")->words,
            Texts{"1500"});
  EXPECT_EQ(find(subject_of("hc_head/closed_gates/eager", {}), "rms_eps_exponent")->words,
            Texts{"6"});
}

TEST(CaseSubjects, ChangeReals) {
  const CaseSubject subject = subject_of("rms_norm/v4_pro_hidden/eager", {"eps=0.5"});
  EXPECT_EQ(subject.question(subject.start()).settings, Texts{"eps=0.5"});
  const Knob& eps = *find(subject, "eps");
  EXPECT_EQ(eps.words, (Texts{"", "0.5"}));
  EXPECT_NE(std::ranges::find(eps.others, "0"), eps.others.end());
  EXPECT_TRUE(subject.question(changed(subject.start(), "eps", "")).settings.empty());
  EXPECT_EQ(subject.question(changed(subject.start(), "eps", "0")).settings, Texts{"eps=0"});
  // post_mult is a number of the row, and a real of the launch that follows from it.
  EXPECT_EQ(find(subject_of("mhc_pre/one_token/eager", {}), "post_mult")->words, Texts{"2"});
  // A row of the file that has its own eps.
  const CaseSubject other = subject_of("rms_norm/random_9/eager", {});
  EXPECT_EQ(find(other, "eps")->words, Texts{"0.001"});
  EXPECT_TRUE(other.question(other.start()).settings.empty());
}

TEST(CaseSubjects, ChangeStrides) {
  const CaseSubject subject =
      subject_of("rms_norm/v4_pro_hidden/eager", {"gap_x_row_stride=64", "far_out_row_stride=31"});
  EXPECT_EQ(subject.question(subject.start()).settings,
            (Texts{"far_out_row_stride=31", "gap_x_row_stride=64"}));
  EXPECT_EQ(find(subject, "gap_x_row_stride")->plainest(), "0");
  EXPECT_EQ(find(subject, "far_out_row_stride")->words, (Texts{"0", "31"}));
  const Candidate dense = changed(subject.start(), "far_out_row_stride", "0");
  EXPECT_EQ(subject.question(dense).settings, Texts{"gap_x_row_stride=64"});
  // A stride that the file widens.
  const CaseSubject other = subject_of("rms_norm/random_8/eager", {});
  const Candidate narrow = changed(other.start(), "gap_x_row_stride", "0");
  EXPECT_EQ(other.question(narrow).settings, Texts{"gap_x_row_stride=0"});
}

// Padding rows alone are no work.
TEST(CaseSubjects, KeepARowOfWork) {
  const CaseSubject subject = subject_of("compressed_slot_mapping/long_buffer/eager", {});
  EXPECT_TRUE(subject.is_possible(changed(subject.start(), "requests", "1")));
  EXPECT_FALSE(subject.is_possible(changed(subject.start(), "requests", "0")));
}

// Leaving out a choice is its first value, which is not asked again.
TEST(CaseSubjects, KnowOtherValuesOfChoices) {
  const CaseSubject subject = subject_of("rms_norm/v4_pro_hidden/eager", {});
  EXPECT_EQ(find(subject, "rounding")->others, Texts{"twice"});
}

TEST(CaseSubjects, KnowOtherValuesOfWords) {
  const CaseSubject subject = subject_of("rms_norm/v4_pro_hidden/eager", {});
  EXPECT_EQ(find(subject, "rounding")->words, Texts{""});
  EXPECT_FALSE(find(subject, "rounding")->others.empty());
}

TEST(CaseSubjects, KnowWhatIsNoCase) {
  const CaseSubject subject = subject_of("rms_norm/v4_pro_hidden/eager", {});
  EXPECT_TRUE(subject.is_possible(subject.start()));
  EXPECT_FALSE(subject.is_possible(changed(subject.start(), "hidden", "-1")));
  EXPECT_FALSE(subject.is_possible(changed(subject.start(), "rounding", "thrice")));
  EXPECT_FALSE(subject.is_possible(changed(subject.start(), "scenario", "composition")));
}

TEST(CaseSubjects, NameTheirPointAndLeaveOutWhatLimitsNothing) {
  CaseSubject subject = subject_of("rms_norm/v4_pro_hidden/full_graph", {});
  EXPECT_EQ(subject.question(subject.start()).point, "");
  subject.take_point("fill=real,poison=huge,policy=late,seed=5");
  EXPECT_EQ(subject.question(subject.start()).point, "fill=real,poison=huge,policy=late,seed=5");
  EXPECT_EQ(subject.start().at("point.live"), "4");
  EXPECT_EQ(subject.start().at("point.steps"), "6");
  Candidate tame = changed(changed(subject.start(), "point.live", "1"), "point.steps", "2");
  for (const char* part : {"fill", "poison", "policy", "seed"}) {
    const std::string name = std::string("point.") + part;
    tame = changed(tame, name, find(subject, name)->plainest());
  }
  EXPECT_EQ(subject.question(tame).point, "live=1,steps=2");
  EXPECT_EQ(subject.question(changed(tame, "tokens", "1")).point, "steps=2");
}

TEST(CaseSubjects, OfferTheSeedOfARunOnlyIfItHasOne) {
  EXPECT_EQ(find(subject_of("rms_norm/one_token/eager", {}), "--seed"), nullptr);
  Question run;
  run.seed = "7";
  const CaseSubject subject = subject_of("rms_norm/one_token/eager", {}, run);
  EXPECT_EQ(subject.question(subject.start()).seed, "7");
  EXPECT_EQ(find(subject, "--seed")->plainest(), "0");
}

TEST(ServingSubjects, LeaveAloneWhatIsServedAndPlanted) {
  const CaseSubject subject =
      subject_of("decode_step/v4/full", {"fault=padding_writes_slot_0", "requests=16"});
  for (const char* name : {"model", "fault", "keep_steps", "keep_requests"}) {
    EXPECT_EQ(find(subject, name), nullptr) << name;
  }
  EXPECT_EQ(subject.subject().knobs.front().name, "requests");
  EXPECT_EQ(find(subject, "traffic")->plainest(), "steady");
  EXPECT_EQ(find(subject, "drafter")->plainest(), "0");
  EXPECT_EQ(subject.question(subject.start()).settings,
            (Texts{"requests=16", "fault=padding_writes_slot_0"}));
  EXPECT_EQ(subject.size(subject.start())->steps, 4);
}

// -1 means the number of tokens with which the planted fault shows, and the model's own drafter.
TEST(ServingSubjects, NameWhatMinusOneMeans) {
  const CaseSubject subject =
      subject_of("decode_step/v4/full", {"fault=positions_of_the_first_token"});
  EXPECT_GT(std::stoi(subject.start().at("speculated")), 0);
  EXPECT_EQ(find(subject, "speculated")->plainest(), "0");
  EXPECT_EQ(subject.start().at("drafter"), "1");
  EXPECT_EQ(subject_of("decode_step/v32/full", {}).start().at("drafter"), "0");
}

TEST(ServingSubjects, DoNotSayWhatComesToTheSame) {
  const CaseSubject subject = subject_of("decode_step/v32/full", {});
  Candidate candidate = changed(changed(subject.start(), "drafter", "0"), "speculated", "0");
  EXPECT_TRUE(subject.question(candidate).settings.empty());
  candidate = changed(candidate, "prompt_tokens", "0");
  EXPECT_EQ(subject.question(candidate).settings, (Texts{"prompt_tokens=0"}));
}

TEST(ServingSubjects, KnowWhatCannotBeServed) {
  const CaseSubject subject = subject_of("decode_step/v4_prompts/piecewise", {});
  EXPECT_TRUE(subject.is_possible(subject.start()));
  EXPECT_FALSE(subject.is_possible(changed(subject.start(), "prompt_tokens", "0")));
  EXPECT_FALSE(subject.is_possible(changed(subject.start(), "keep_steps", "x")));
}

TEST(ServingSubjects, NumberWhatIsKept) {
  const CaseSubject subject =
      subject_of("decode_step/v4/full", {"steps=5", "requests=3", "traffic=steady"});
  const auto& keeps = subject.subject().keeps;
  ASSERT_EQ(keeps.size(), 2u);
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(keeps[0].kept(subject.start()), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(keeps[1].kept(subject.start()), (Numbers{1, 2, 3}));
  Candidate part = changed(subject.start(), "keep_steps", "1,3-4");
  part = changed(part, "keep_requests", "2-9");
  EXPECT_EQ(keeps[0].kept(part), (Numbers{1, 3, 4}));
  EXPECT_EQ(keeps[1].kept(part), (Numbers{2, 3}));
  EXPECT_EQ(subject.size(part)->text(), "2 requests in 3 steps");
}

}  // namespace case_subject_test

}  // namespace plumb::bisect
