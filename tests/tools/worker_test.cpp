// SPDX-License-Identifier: Apache-2.0
//
// Results cross the channel of a worker unchanged. Each struct is decomposed into all its members,
// so that this file does not compile after a member is added, until the member is listed in
// tools/result_fields.h and filled below.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tools/bisect/bisect_ops_fields.h"
#include "tools/result_fields.h"

namespace plumb::tools {
namespace worker_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

cases::Mismatch mismatch() { return {1, 2, "[1, 2]", 0.1, -kInfinity, 1e-300, 7}; }

cases::TensorReport tensor_report() {
  return {"out", 1,    2, 3,         4,          {1, 5},    mismatch(),   kInfinity,
          0.25,  0.75, 6, "a for b", {"line 1"}, "shifted", {100, 10, 80}};
}

cases::Finding finding() {
  return {cases::Detector::cost, 2, 9, "host", "layer 1 attention", "text"};
}

cases::TensorSummary summary() {
  return {"out", 10, 0.5, 0.25, 0.75, 0.125, 6, "a for b", {9, 8, 7}};
}

golden::GoldenComparison comparison() {
  const golden::TensorStatistics was{1, 2, 3, 4, 5, 6, 7}, is{7, 6, 5, 4, 3, 2, 1};
  const golden::TensorDrift drift{"out",   1,        2,
                                  3,       4,        0.5,
                                  0.25,    "[1, 2]", {1, 2, 3, 4, 5, 6, 7, 8},
                                  "shape", "1-3",    {{1, 2, 3, kInfinity, 5}},
                                  was,     is,       0.125,
                                  true,    "0-7",    true,
                                  true};
  return {golden::Agreement::near_bound, "g++ 99", {drift}, {"line"}};
}

TensorPicture picture() {
  return {.tensor = "out",
          .dtype = "bf16",
          .format = "e4m3fn",
          .scales = "one",
          .shape = {2, 3},
          .exact = true,
          .rows = 1,
          .columns = 2,
          .live_rows = 3,
          .group_rows = 4,
          .cells = {"0."},
          .counts = {7, 8},
          .right = 5,
          .infinite = 6,
          .unpromised = 7,
          .worst = {{.row = 9, .coordinates = "[9, 0]"}},
          .wrong_values = "1:2",
          .right_values = "3:3"};
}

Finished finished() {
  Finished all;
  all.features = {{"evicted", 2}};
  all.result = {.id = "op/row/eager",
                .platform = "sim-sm90",
                .outcome = cases::Outcome::untrusted,
                .reason = "why",
                .lacked_memory = true,
                .failures = {{"step 0", {"line"}, {tensor_report()}, "race"}},
                .tensors = {summary()},
                .points = 3,
                .launches = 4,
                .comparisons = 5,
                .phases = {1, 2, 3, 4},
                .diagnosis = "looks like",
                .right_under = {{"floor=1e-4", "chains=1"}},
                .passes_under = {{"skip=never", ""}},
                .failed_at = "late"};
  all.findings = {finding()};
  all.golden = comparison();
  all.pictures = {picture()};
  all.dump = "folder";
  all.dump_trouble = "full";
  all.op = "op";
  all.row = "row";
  all.scenario = "eager";
  all.reproduce = "plumb run";
  all.contrast = {"fails with late streams"};
  all.notes = {"noted"};
  all.seconds = 0.1;
  all.trivial = true;
  return all;
}

cases::Diagnosis diagnosis() {
  return {{{"fault", "stands for", {8, 7, 1, 2}}},
          cases::Explanation{"other", "another", {8, 5, 3, 4}},
          5,
          1,
          "too large",
          "rows 3-6",
          "race"};
}

template <class T>
T sent(const T& value) {
  return process::decode<T>(process::encode(value));
}

TEST(Wire, ATensorReportArrivesWhole) {
  const cases::TensorReport report = sent(tensor_report());
  const auto& [tensor, rows_compared, elements_compared, rows_total, wrong_elements, wrong_rows,
               worst, margin, observability, zero_share, flips, flip, failures, pattern, sample] =
      report;
  EXPECT_EQ(tensor + flip + pattern, "outa for bshifted");
  EXPECT_EQ((std::vector<std::int64_t>{rows_compared, elements_compared, rows_total, wrong_elements,
                                       flips}),
            (std::vector<std::int64_t>{1, 2, 3, 4, 6}));
  EXPECT_EQ(wrong_rows, (std::vector<std::int64_t>{1, 5}));
  EXPECT_EQ((std::vector<double>{margin, observability, zero_share}),
            (std::vector<double>{kInfinity, 0.25, 0.75}));
  EXPECT_EQ(failures, std::vector<std::string>{"line 1"});
  EXPECT_FALSE(report.passed());
  const auto& [row, column, coordinates, expected, got, bound, ratio] = worst.value();
  EXPECT_EQ(row, 1);
  EXPECT_EQ(column, 2);
  EXPECT_EQ(coordinates, "[1, 2]");
  EXPECT_EQ((std::vector<double>{expected, got, bound, ratio}),
            (std::vector<double>{0.1, -kInfinity, 1e-300, 7}));
  const auto& [rows, judged, repeated] = sample;
  EXPECT_EQ(rows + 1000 * judged + 1'000'000 * repeated, 80'010'100);
  EXPECT_FALSE(sent(cases::TensorReport{}).worst.has_value());
  cases::TensorReport nan = tensor_report();
  nan.worst->got = std::nan("");
  EXPECT_TRUE(std::isnan(sent(nan).worst->got));
}

TEST(Wire, AFindingArrivesWhole) {
  const cases::Finding arrived = sent(finding());
  const auto& [detector, step, position, op, call, text] = arrived;
  EXPECT_EQ(detector, cases::Detector::cost);
  EXPECT_EQ(step, 2);
  EXPECT_EQ(position, 9);
  EXPECT_EQ(op + call + text, "hostlayer 1 attentiontext");
}

void expect_statistics(const golden::TensorStatistics& got, const std::vector<double>& wanted) {
  const auto& [non_finite, mean, norm, least, greatest, least_at, greatest_at] = got;
  EXPECT_EQ((std::vector<double>{static_cast<double>(non_finite), mean, norm, least, greatest,
                                 static_cast<double>(least_at), static_cast<double>(greatest_at)}),
            wanted);
}

TEST(Wire, AComparisonArrivesWhole) {
  const golden::GoldenComparison arrived = sent(comparison());
  const auto& [agreement, toolchain, drifts, lines] = arrived;
  EXPECT_EQ(agreement, golden::Agreement::near_bound);
  EXPECT_EQ(toolchain, "g++ 99");
  EXPECT_EQ(lines, std::vector<std::string>{"line"});
  const auto& [tensor, rows, rows_moved, elements, elements_moved, ulp, of_bound, where, histogram,
               other, moved_rows, largest, was, is, difference, estimated, columns, rejected,
               of_calls] = drifts.at(0);
  EXPECT_TRUE(rejected && estimated && of_calls);
  EXPECT_EQ(moved_rows + columns, "1-30-7");
  EXPECT_EQ(difference, 0.125);
  expect_statistics(was.value(), {1, 2, 3, 4, 5, 6, 7});
  expect_statistics(is.value(), {7, 6, 5, 4, 3, 2, 1});
  const auto& [row, column, had, has, steps] = largest.at(0);
  EXPECT_EQ(row + 10 * column, 21);
  EXPECT_EQ(had + 10 * steps, 53);
  EXPECT_EQ(has, kInfinity);
  EXPECT_EQ(tensor + where + other, "out[1, 2]shape");
  EXPECT_EQ((std::vector<std::int64_t>{rows, rows_moved, elements, elements_moved}),
            (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(ulp, 0.5);
  EXPECT_EQ(of_bound, 0.25);
  EXPECT_EQ(histogram.back(), 8);
}

void expect_result(const cases::CaseResult& result) {
  const auto& [id, platform, outcome, reason, lacked_memory, failures, tensors, points, launches,
               comparisons, phases, evidence, text, right_under, passes_under, failed_at,
               known_verdicts] = result;
  EXPECT_TRUE(lacked_memory);
  EXPECT_EQ(id + platform + reason + text + failed_at, "op/row/eagersim-sm90whylooks likelate");
  EXPECT_EQ(outcome, cases::Outcome::untrusted);
  EXPECT_EQ(right_under, (std::vector<cases::Alternative>{{"floor=1e-4", "chains=1"}}));
  EXPECT_EQ(passes_under, (std::vector<cases::Alternative>{{"skip=never", ""}}));
  EXPECT_EQ(points + 10 * launches + 100 * comparisons, 543);
  const auto& [fill, reference, device, judge] = phases;
  EXPECT_EQ(fill + 10 * reference + 100 * device + 1000 * judge, 4321);
  const auto& [context, lines, reports, kind] = failures.at(0);
  EXPECT_EQ(kind, "race");
  EXPECT_EQ(context + lines.at(0) + reports.at(0).tensor, "step 0lineout");
  const auto& [tensor, elements_compared, margin, observability, most_observable, zero_share, flips,
               flip, sample] = tensors.at(0);
  EXPECT_EQ(tensor + flip, "outa for b");
  EXPECT_EQ(elements_compared + flips, 16);
  EXPECT_EQ(margin + 10 * observability + 100 * zero_share, 15.5);
  EXPECT_EQ(most_observable, 0.75);
  EXPECT_EQ(sample.judged, 8);
  // Not sent, because only the process that ran the case uses them.
  EXPECT_TRUE(evidence == nullptr && known_verdicts.empty());
}

void expect_picture(const TensorPicture& one) {
  const auto& [tensor, dtype, format, scales, shape, exact, rows, columns, live_rows, group_rows,
               cells, counts, right, infinite, unpromised, worst, wrong_values, right_values] = one;
  EXPECT_EQ(tensor + dtype + format + scales + wrong_values + right_values,
            "outbf16e4m3fnone1:23:3");
  EXPECT_EQ(shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_TRUE(exact);
  EXPECT_EQ(rows + 10 * columns + 100 * live_rows + 1000 * group_rows, 4321);
  EXPECT_EQ(right + 10 * infinite + 100 * unpromised, 765);
  EXPECT_EQ(cells, std::vector<std::string>{"0."});
  EXPECT_EQ(counts, (std::vector<std::int64_t>{7, 8}));
  EXPECT_EQ(worst.at(0).row, 9);
  EXPECT_EQ(worst.at(0).coordinates, "[9, 0]");
}

TEST(Wire, AFinishedCaseArrivesWhole) {
  const Finished arrived = sent(finished());
  const auto& [result, findings, golden, op, row, scenario, reproduce, contrast, notes, pictures,
               dump, dump_trouble, seconds, trivial, features] = arrived;
  ASSERT_EQ(pictures.size(), 1u);
  expect_picture(pictures.front());
  EXPECT_EQ(features, finished().features);
  EXPECT_EQ(features.at("evicted"), 2);
  expect_result(result);
  EXPECT_EQ(findings.size(), 1u);
  EXPECT_EQ(contrast, std::vector<std::string>{"fails with late streams"});
  EXPECT_EQ(notes, std::vector<std::string>{"noted"});
  EXPECT_EQ(dump + dump_trouble, "folderfull");
  EXPECT_EQ(golden.drifts.size(), 1u);
  EXPECT_EQ(op + row + scenario + reproduce, "oproweagerplumb run");
  EXPECT_EQ(seconds, 0.1);
  EXPECT_TRUE(trivial);
  EXPECT_EQ(to_json({.all = {arrived}}), to_json({.all = {finished()}}));
  EXPECT_EQ(failure_text(arrived, {}), failure_text(finished(), {}));
}

TEST(Wire, ADiagnosedWatchArrivesWhole) {
  const cases::DiagnosedWatch arrived =
      sent(cases::DiagnosedWatch{{{finding()}, 3, 77, {{"moved", 4}}, 5, 6}, diagnosis(), "no op"});
  const auto& [result, diagnosed, skipped] = arrived;
  EXPECT_EQ(skipped, "no op");
  const auto& [findings, steps, calls_judged, features, choices, flips] = result;
  EXPECT_EQ(features.at("moved"), 4);
  EXPECT_TRUE(result.found_by(cases::Detector::cost));
  EXPECT_EQ(steps + 10 * calls_judged + 1000 * choices + 10'000 * flips, 65'773);
  const auto& [named, next, known, left_out, not_tried, pattern, accident] = diagnosed;
  EXPECT_EQ(named.at(0).name + next.value().stands_for, "faultanother");
  EXPECT_EQ(known + left_out, 6);
  EXPECT_EQ(not_tried + pattern + accident, "too largerows 3-6race");
  const auto& [wrong, explained, invented, by_chance] = next->match;
  EXPECT_EQ(wrong + 10 * explained + 100 * invented + 1000 * by_chance, 4358);
  EXPECT_EQ(text_of(diagnosed), text_of(diagnosis()));
}

TEST(Wire, ADifferenceArrivesWhole) {
  const TwiceAnswer answer{cases::ReplayDifference{cases::ReplayDifference::From::its_memory,
                                                   1,
                                                   "part",
                                                   "call",
                                                   "op",
                                                   "out",
                                                   {1, 2},
                                                   9,
                                                   "x",
                                                   {7, 8}},
                           "failed"};
  const TwiceAnswer arrived = sent(answer);
  const auto& [difference, failed] = arrived;
  EXPECT_EQ(failed, "failed");
  const auto& [from, step, part, call, op, tensor, rows, rows_total, input, digests] =
      difference.value();
  EXPECT_EQ(from, cases::ReplayDifference::From::its_memory);
  EXPECT_EQ(part + call + op + tensor + input, "partcallopoutx");
  EXPECT_EQ(step + 10 * rows_total, 91);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(digests[1], 8u);
}

TEST(Wire, EnumsAreNames) {
  const nlohmann::json json = finding();
  EXPECT_EQ(json.at("detector"), "cost");
  for (int i = 0; i < cases::kDetectors; ++i) {
    const auto detector = static_cast<cases::Detector>(i);
    EXPECT_EQ(nlohmann::json(detector).get<cases::Detector>(), detector);
  }
  EXPECT_THROW(nlohmann::json("costs").get<cases::Detector>(), nlohmann::json::exception);
  EXPECT_THROW(nlohmann::json(3).get<cases::Detector>(), nlohmann::json::exception);
}

TEST(Wire, OtherBytesAreRefused) {
  EXPECT_THROW(process::decode<CaseAnswer>({}), process::BadMessage);
  EXPECT_THROW(process::decode<Finished>({1, 2, 3}), process::BadMessage);
  process::Bytes cut = process::encode(finished());
  cut.resize(cut.size() / 2);
  EXPECT_THROW(process::decode<Finished>(cut), process::BadMessage);
}

}  // namespace worker_test
}  // namespace plumb::tools
