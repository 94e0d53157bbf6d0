// SPDX-License-Identifier: Apache-2.0
#include "tools/agreement/agreement_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace plumb::tools {

namespace {

using cases::OutputDifference;
using nlohmann::ordered_json;

// Sums over all cases of an op on a platform.
struct OpDifference {
  std::string op, platform;
  std::int64_t cases = 0, wrong = 0;
  OutputDifference sum;      // sum over all outputs; `where` begins with the row
  std::string not_compared;  // reason, if a case was not compared
};

void add(const ComparedCase& one, OpDifference& total) {
  if (!one.diff.not_compared.empty()) {
    total.not_compared = one.diff.not_compared;
    return;
  }
  ++total.cases;
  total.wrong += !one.diff.base_wrong.empty() || !one.diff.change_wrong.empty();
  OutputDifference& sum = total.sum;
  for (const OutputDifference& output : one.diff.outputs) {
    sum.rows += output.rows;
    sum.rows_differ += output.rows_differ;
    sum.elements += output.elements;
    sum.elements_differ += output.elements_differ;
    sum.bits_differ += output.bits_differ;
    sum.beyond |= output.beyond;
    if (!output.where.empty() && (sum.where.empty() || output.of_bound > sum.of_bound)) {
      sum.where = one.row + ", " + output.where;
    }
    sum.of_bound = std::max(sum.of_bound, output.of_bound);
  }
}

std::vector<OpDifference> by_op(const AgreementReport& report) {
  std::vector<OpDifference> ops;
  for (const ComparedCase& one : report.cases) {
    auto found = std::ranges::find_if(ops, [&](const OpDifference& total) {
      return total.op == one.op && total.platform == one.platform;
    });
    if (found == ops.end()) {
      ops.push_back({.op = one.op, .platform = one.platform, .sum = {}, .not_compared = {}});
      found = ops.end() - 1;
    }
    add(one, *found);
  }
  return ops;
}

// Rounds up, so that a share beyond 1 never reads as 1.
std::string share_text(double of_bound) {
  if (of_bound < 0) return "-";
  if (!std::isfinite(of_bound)) return "inf";
  return fmt::format("{:.3f}", std::ceil(of_bound * 1000) / 1000);
}

std::string line_of(const OpDifference& op) {
  const std::string name = fmt::format("{:<36}{:<12}", op.op, op.platform);
  if (op.cases == 0) return fmt::format("{}not compared: {}\n", name, op.not_compared);
  const OutputDifference& sum = op.sum;
  return fmt::format("{}{:>5}{:>9} of {:<7}{:>9} of {:<9}{:>9}{:>10}  {}\n", name, op.cases,
                     sum.rows_differ, sum.rows, sum.elements_differ, sum.elements, sum.bits_differ,
                     sum.elements_differ == 0 ? "0" : share_text(sum.of_bound), sum.where);
}

// Lines about one case that a reviewer has to look at.
std::string remarks_on(const ComparedCase& one, const AgreementSides& sides) {
  std::string text;
  const std::string place = fmt::format("{}   {}: ", one.id, one.platform);
  for (const OutputDifference& output : one.diff.outputs) {
    if (!output.beyond) continue;
    const std::string share =
        output.of_bound < 0 ? "" : fmt::format(", {} × the bound", share_text(output.of_bound));
    text += fmt::format("{}{} differs more than two right results can{}: {}\n", place,
                        output.tensor, share, output.where);
  }
  const auto tell = [&](const std::string& side, const std::string& wrong) {
    if (!wrong.empty()) text += fmt::format("{}{} is wrong: {}\n", place, side, wrong);
  };
  tell(sides.base, one.diff.base_wrong);
  tell(sides.change, one.diff.change_wrong);
  return text;
}

std::string summary_of(const std::vector<OpDifference>& ops) {
  const auto count = [&](const auto& is) { return std::ranges::count_if(ops, is); };
  const auto same = [](const OpDifference& op) {
    return op.cases > 0 && op.sum.elements_differ == 0 && op.wrong == 0;
  };
  const auto fails = [](const OpDifference& op) { return op.sum.beyond || op.wrong > 0; };
  const auto none = [](const OpDifference& op) { return op.cases == 0; };
  const auto within = std::ssize(ops) - count(same) - count(fails) - count(none);
  return fmt::format(
      "{} with the same bits, {} within the bounds, {} beyond them or wrong, {} not compared\n",
      count(same), within, count(fails), count(none));
}

ordered_json json_of(const OutputDifference& sum) {
  return {{"rows", sum.rows},
          {"rows_differ", sum.rows_differ},
          {"elements", sum.elements},
          {"elements_differ", sum.elements_differ},
          {"bits_differ", sum.bits_differ},
          {"of_bound", sum.of_bound},
          {"beyond", sum.beyond},
          {"where", sum.where}};
}

ordered_json json_of(const ComparedCase& one) {
  ordered_json json{{"case", one.id},
                    {"platform", one.platform},
                    {"not_compared", one.diff.not_compared},
                    {"base_wrong", one.diff.base_wrong},
                    {"change_wrong", one.diff.change_wrong},
                    {"outputs", ordered_json::object()}};
  for (const OutputDifference& output : one.diff.outputs) {
    json["outputs"][output.tensor] = json_of(output);
  }
  return json;
}

}  // namespace

bool AgreementReport::fails() const {
  return std::ranges::any_of(cases, [](const ComparedCase& one) {
    const cases::ImplementationDiff& diff = one.diff;
    return diff.beyond() || !diff.base_wrong.empty() || !diff.change_wrong.empty();
  });
}

std::string text_of(const AgreementReport& report) {
  std::string text = fmt::format(
      "{} against {}: outputs of one launch for each fill\n"
      "{:<48}{:>5}{:>20}{:>22}{:>9}{:>10}  {}\n",
      report.sides.change, report.sides.base, "", "cases", "rows differ   ", "elements differ    ",
      "bits", "of bound", "largest difference at");
  const std::vector<OpDifference> ops = by_op(report);
  for (const OpDifference& op : ops) text += line_of(op);
  const auto tell = [&](const std::vector<std::string>& lacking, const std::string& side) {
    if (lacking.empty()) return;
    text += fmt::format("only {} has {}\n", side, fmt::join(lacking, ", "));
  };
  tell(report.only_base, report.sides.base);
  tell(report.only_change, report.sides.change);
  for (const ComparedCase& one : report.cases) text += remarks_on(one, report.sides);
  return text + summary_of(ops);
}

std::string to_json(const AgreementReport& report) {
  ordered_json json{{"base", report.sides.base},     {"change", report.sides.change},
                    {"only_base", report.only_base}, {"only_change", report.only_change},
                    {"ops", ordered_json::array()},  {"cases", ordered_json::array()}};
  for (const OpDifference& op : by_op(report)) {
    ordered_json one{{"op", op.op}, {"platform", op.platform}, {"cases", op.cases}};
    one.update(json_of(op.sum));
    one["not_compared"] = op.not_compared;
    json["ops"].push_back(std::move(one));
  }
  for (const ComparedCase& one : report.cases) json["cases"].push_back(json_of(one));
  return json.dump(1) + "\n";
}

}  // namespace plumb::tools
