// SPDX-License-Identifier: Apache-2.0
//
// A contrast (cases/studies/contrast.h) names what separates failing from passing runs or rows. It
// never contradicts an observation, and never reports what chance explains.
#include "cases/studies/contrast.h"

#include <gtest/gtest.h>
#include <plumb/plumb_ops.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/point_text.h"
#include "cases/judge/error_pattern.h"
#include "cases/studies/row_contrast.h"
#include "cases/studies/separation.h"
#include "faults/faults.h"
#include "faults/replaced_op.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace contrast_test {

std::vector<Observation> observations(int failed, int passed, double first_pass) {
  std::vector<Observation> all;
  for (int i = 0; i < failed; ++i) all.push_back({true, static_cast<double>(i)});
  for (int i = 0; i < passed; ++i) all.push_back({false, first_pass + i});
  return all;
}

TEST(Separation, FindsTheValuesOnBothSides) {
  const auto found = separating_value(observations(8, 9, 20), 1);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->fails_below);
  EXPECT_EQ(found->last_failing, 7);
  EXPECT_EQ(found->first_passing, 20);
  EXPECT_EQ(found->failed, 8);
  EXPECT_EQ(found->passed, 9);
}

TEST(Separation, OneExceptionIsEnoughForNone) {
  auto all = observations(8, 9, 20);
  all.push_back({true, 25});
  EXPECT_FALSE(separating_value(all, 1));
}

// Near a limit failures and passes may mix, up to a share that the caller gives.
TEST(Separation, AFewMayLieBetween) {
  auto all = observations(8, 9, 20);
  all.push_back({true, 21});
  EXPECT_FALSE(separating_value(all, 1));
  const auto found = separating_value(all, 1, 0.2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->last_failing, 7);
  EXPECT_EQ(found->first_passing, 22);
  EXPECT_EQ(found->mixed, 3);
  EXPECT_EQ(found->failed, 8);
  EXPECT_EQ(found->passed, 7);
  all.push_back({false, 3});
  EXPECT_FALSE(separating_value(all, 1, 0.2)) << "most lies between";
}

TEST(Separation, AValueOnBothSidesSeparatesNothing) {
  EXPECT_FALSE(separating_value(observations(8, 9, 7), 1));
}

TEST(Separation, FewObservationsAreNoProof) {
  EXPECT_FALSE(separating_value(observations(2, 100, 200), 1)) << "two failures";
  EXPECT_FALSE(separating_value(observations(4, 4, 20), 1)) << "2 of 70 choices";
  EXPECT_TRUE(separating_value(observations(7, 7, 20), 1));
  EXPECT_FALSE(separating_value(observations(7, 7, 20), 10)) << "one of ten numbers always may";
}

TEST(Separation, WhatLiesBetweenIsPartOfTheChance) {
  std::vector<Observation> all;
  for (int i = 0; i < 20; ++i) all.push_back({i < 9 || i == 10, static_cast<double>(i)});
  // Of 184756 placements of 10 failures, (1 + 2 + 1) on each side separate this well.
  EXPECT_TRUE(separating_value(all, 23, 0.1));
  EXPECT_FALSE(separating_value(all, 24, 0.1));
}

TEST(Separation, TextsDifferIfTheValuesDo) {
  const auto texts = [](double failing, double passing) {
    const SeparatingTexts found =
        separating_texts({.last_failing = failing, .first_passing = passing});
    return found.last_failing + " " + found.first_passing;
  };
  EXPECT_EQ(texts(0.00731, 0.0123), "0.00731 0.0123");
  EXPECT_EQ(texts(1.00041, 1.00049), "1.0004 1.0005");
  EXPECT_EQ(texts(3, 3.0004), "3 3.0004");
  EXPECT_EQ(texts(64, 65), "64 65");
}

CaseResult failed(const Case& which, const RunOptions& options) {
  CaseResult result = run_case(which, options);
  EXPECT_EQ(result.outcome, Outcome::failed);
  return result;
}

plumb_status writes_nothing(const void*) { return PLUMB_OK; }

TEST(Contrast, NamesAKernelThatWritesNothing) {
  for (const char* id : {"rms_norm/v4_pro_hidden/eager", "rms_norm/hidden_769/eager",
                         "inverse_rope/ascending_positions/eager"}) {
    const Case& which = find_case(id);
    device::OpEntry entry =
        *device::find_entry(device::builtin_implementation("sim-sm90"), which.op->name);
    entry.launch = writes_nothing;
    RunOptions options = on("sim-sm90");
    options.implementation = with_op_replaced({entry, {}});
    const std::string cause = contrast(which, failed(which, options), options).cause;
    // Outputs that an op updates in place start as inputs instead of poison.
    const bool in_place = which.op->name == "inverse_rope";
    EXPECT_EQ(cause.find("the kernel wrote nothing: each promised element") == 0, !in_place)
        << id << ": " << cause;
  }
}

const device::OpEntry& plumbs_norm() {
  return *device::find_entry(device::builtin_implementation("sim-sm90"), "rms_norm");
}
plumb_status launch_norm(const plumb_rms_norm_params& p) { return plumbs_norm().launch(&p); }

RunOptions with_launcher(plumb_status (*launch)(const void*), const char* point) {
  device::OpEntry entry = plumbs_norm();
  entry.launch = launch;
  RunOptions options = on("sim-sm90");
  options.implementation = with_op_replaced({entry, {}});
  options.point = point_from(point);
  return options;
}

Contrast contrast_of(const char* id, const RunOptions& options) {
  const Case& which = find_case(id);
  return contrast(which, failed(which, options), options);
}

// Adds the norm to `out` instead of overwriting it.
plumb_status adds_to_output(const void* params) {
  const plumb_rms_norm_params& p = *static_cast<const plumb_rms_norm_params*>(params);
  const auto to_float = [](std::uint16_t value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
  };
  const auto place = [&](std::int64_t i) {
    return p.out + i / p.hidden * p.out_row_stride + i % p.hidden;
  };
  std::vector<std::uint16_t> before;
  for (std::int64_t i = 0; i < p.tokens * p.hidden; ++i) before.push_back(*place(i));
  const plumb_status status = launch_norm(p);
  for (std::int64_t i = 0; i < p.tokens * p.hidden; ++i) {
    const float sum = to_float(before[static_cast<std::size_t>(i)]) + to_float(*place(i));
    *place(i) = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(sum) >> 16);
  }
  return status;
}

// Adding a result to NaN or to 1.3e36 leaves these unchanged.
TEST(Contrast, AnAdditionToPoisonIsNotNothing) {
  const Contrast found = contrast_of("rms_norm/v4_flash_hidden/eager",
                                     with_launcher(adds_to_output, "fill=real,poison=nan"));
  EXPECT_EQ(found.cause, "");
  EXPECT_EQ(std::ranges::count(found.lines,
                               "fails with nan and huge poison, passes with zero poison: the "
                               "result depends on what outputs or scratch hold before the launch"),
            1)
      << testing::PrintToString(found.lines);
}

device::Policy policy_of_device = device::Policy::early;
plumb_status wrong_if_late(const void* params) {
  plumb_rms_norm_params p = *static_cast<const plumb_rms_norm_params*>(params);
  if (policy_of_device != device::Policy::early) p.eps = 1e30f;
  return launch_norm(p);
}

TEST(Contrast, NamesThePolicyOfStreams) {
  RunOptions options = with_launcher(wrong_if_late, "fill=real,policy=late");
  options.open = [](std::string_view name, const device::Conditions& conditions) {
    policy_of_device = conditions.policy;
    return device::open_device(name, conditions);
  };
  const Contrast found = contrast_of("rms_norm/v4_flash_hidden/eager", options);
  EXPECT_EQ(found.cause, "");
  EXPECT_EQ(std::ranges::count(found.lines, "fails with late streams, passes with early streams"),
            1)
      << testing::PrintToString(found.lines);
}

// Passes with the exact fill, whose mean squares are all at least 1024: eps is negligible there.
plumb_status adds_too_large_an_eps(const void* params) {
  plumb_rms_norm_params p = *static_cast<const plumb_rms_norm_params*>(params);
  p.eps = 0.01f;
  return launch_norm(p);
}

TEST(Contrast, NamesTheFill) {
  const Contrast found = contrast_of("rms_norm/hidden_255/eager",
                                     with_launcher(adds_too_large_an_eps, "fill=adversarial"));
  ASSERT_FALSE(found.lines.empty());
  EXPECT_EQ(found.lines.front(), "fails with real and adversarial fill, passes with exact fill")
      << "in the order in which plumb knows the fills, and not in that of the runs";
  for (const std::string& line : found.lines) {
    EXPECT_EQ(line.find("streams"), std::string::npos) << line;
    EXPECT_EQ(line.find("poison"), std::string::npos) << line;
  }
}

plumb_status leaves_out_rows(const void* params) {
  plumb_rms_norm_params p = *static_cast<const plumb_rms_norm_params*>(params);
  p.tokens = std::min<std::int64_t>(p.tokens, 64);
  return launch_norm(p);
}

TEST(Contrast, NamesThePlaceOfRows) {
  const Contrast found = contrast_of("rms_norm/tokens_256/eager",
                                     with_launcher(leaves_out_rows, "fill=real,poison=nan"));
  EXPECT_EQ(found.cause, "");
  ASSERT_FALSE(found.lines.empty());
  EXPECT_EQ(found.lines.back(), "with real fill, out: rows from 64 on fail, rows 0-63 pass");
}

// The kernel skips launches by their number, not by the conditions of a run.
int launches = 0;
plumb_status every_second_launch(const void* params) {
  return launches++ % 2 == 0 ? PLUMB_OK : plumbs_norm().launch(params);
}
plumb_status all_but_the_first_launch(const void* params) {
  return launches++ == 0 ? PLUMB_OK : plumbs_norm().launch(params);
}

TEST(Contrast, AnIntermittentKernelHasNoCause) {
  const Case& which = find_case("rms_norm/v4_flash_hidden/eager");
  const RunOptions options = with_launcher(every_second_launch, "fill=real,policy=late,steps=1");
  launches = 0;
  const CaseResult result = failed(which, options);
  // The order of verdicts: the repeated run fails, a run under early streams passes, then another
  // fails.
  launches = 0;
  const Contrast found = contrast(which, result, options);
  EXPECT_EQ(found.cause, "");
  for (const std::string& line : found.lines) {
    EXPECT_EQ(line.find("passes with"), std::string::npos) << line;
  }
}

TEST(Contrast, ARepeatedRunThatPassesIsSaidToDoSo) {
  launches = 0;
  const Contrast found =
      contrast_of("rms_norm/v4_flash_hidden/eager",
                  with_launcher(all_but_the_first_launch, "fill=real,policy=late,steps=1"));
  EXPECT_EQ(found.cause, "");
  EXPECT_EQ(found.lines, std::vector<std::string>{
                             "fails intermittently: a second run with the same inputs passed"});
}

// The contrast's text for one verdict on 40 rows: the first `live` rows are live, and the rows in
// `wrong` fail.
std::string rows_text(std::int64_t live, const std::vector<std::int64_t>& wrong) {
  const OpDefinition& op = find_op("rms_norm");
  const Row row = row_of(op, {{"tokens", 40}, {"hidden", 8}});
  const auto problem = op.make_problem(row, device::open_device("sim-sm90")->properties());
  TensorSet tensors = problem->make_tensors();
  const Step step{.seed = 1, .live = live};
  problem->fill(step, tensors);
  TensorReport report;
  report.tensor = "out";
  report.rows_total = 40;
  report.wrong_rows = wrong;
  report.failures = {"wrong"};
  RowContrast rows;
  rows.add(*problem, {step, tensors, plumbs_norm().numerics}, {report});
  return rows.text();
}

TEST(RowContrast, NamesThePlace) {
  std::vector<std::int64_t> wrong;
  for (std::int64_t row = 0; row < 20; ++row) wrong.push_back(row);
  EXPECT_EQ(rows_text(40, wrong), "out: rows 0-19 fail, rows from 20 on pass");
}

TEST(RowContrast, PaddingIsNoRowThatPasses) {
  std::vector<std::int64_t> wrong;
  for (std::int64_t row = 0; row < 20; ++row) wrong.push_back(row);
  EXPECT_EQ(rows_text(20, wrong), "");
}

TEST(RowContrast, RowsWithoutOrderHaveNoText) {
  std::vector<std::int64_t> wrong;
  for (std::int64_t row = 0; row < 40; row += 2) wrong.push_back(row);
  EXPECT_EQ(rows_text(40, wrong).find("rows from"), std::string::npos);
}

// "each wrong row" and "every wrong element" may be said only if it holds for all of them.
TEST(Unwritten, NearlyAllElementsAreCounted) {
  const auto pattern = [](std::int64_t written_rows) {
    TensorSpec spec{.name = "out", .dtype = Dtype::f32, .shape = {20, 4}, .role = Role::output};
    spec.clues = std::make_shared<const Clues>(Clues{.poison = 0x7b});
    HostTensor got(std::move(spec));
    std::memset(got.bytes().data(), 0x7b, got.bytes().size());
    for (std::int64_t row = 0; row < written_rows; ++row) got.row<float>(row)[1] = 5;
    const std::vector<double> expected(80, 1);
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < 20; ++row) rows.push_back(row);
    const WrongElements wrong(80, 1);
    return error_pattern({got, expected, [](std::int64_t) { return 0.0; }, rows, wrong});
  };
  EXPECT_EQ(pattern(0), "each wrong row was never written (still holds plumb's poison)");
  EXPECT_EQ(pattern(1), "79 of 80 wrong elements were never written (still holds plumb's poison)");
}

// A kernel that leaves out the last row has written something.
TEST(Contrast, AMissingLastRowIsNotNothing) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.op != "rms_norm") continue;
    const Case& which = find_case(std::string(mutant.case_id));
    const RunOptions options = with_mutant(on("sim-sm90"), mutant);
    const CaseResult result = run_case(which, options);
    if (result.outcome != Outcome::failed) continue;
    EXPECT_EQ(contrast(which, result, options).cause, "") << mutant.name;
  }
}

TEST(Contrast, NothingOfACaseThatPasses) {
  const Case& which = find_case("rms_norm/v4_pro_hidden/eager");
  const Contrast found = contrast(which, run_case(which, on("sim-sm90")), on("sim-sm90"));
  EXPECT_EQ(found.cause, "");
  EXPECT_TRUE(found.lines.empty());
}

}  // namespace contrast_test
}  // namespace plumb::cases
