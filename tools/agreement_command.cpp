// SPDX-License-Identifier: Apache-2.0
//
// plumb agreement: counts the output bits that two platforms share, per op. This is a report and
// not a verdict: the exit code is 0. With --plugin it compares two implementations
// (tools/agreement/plugin_agreement.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cases/drivers/session.h"
#include "cases/studies/agreement.h"
#include "tools/agreement/plugin_agreement.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"

namespace plumb::tools {

namespace {

// Sums over all rows of an op.
struct OpAgreement {
  std::string op;
  std::int64_t cases = 0, elements = 0, equal = 0;
  double distance = 0;
  std::string where;  // place of the largest distance: case, tensor, coordinates, both values
  std::string skipped;
};

void add(const cases::Case& which, const std::vector<cases::TensorAgreement>& tensors,
         OpAgreement& total) {
  if (tensors.empty()) {
    total.skipped = "the inputs differ (FP8 dialect)";
    return;
  }
  ++total.cases;
  for (const cases::TensorAgreement& tensor : tensors) {
    total.elements += tensor.elements;
    total.equal += tensor.equal;
    if (tensor.where.empty()) continue;
    if (!total.where.empty() && !(tensor.distance > total.distance)) continue;
    total.distance = tensor.distance;
    total.where = which.row.name + ", " + tensor.where;
  }
}

std::vector<OpAgreement> measure(const Selected& selected) {
  std::vector<OpAgreement> ops;
  for (const cases::Case& which : selected.cases) {
    const bool affordable = which.row.trivial.empty() && !which.row.real_only;
    if (which.scenario->mode != cases::Scenario::Mode::eager || !affordable) continue;
    if (ops.empty() || ops.back().op != which.op->name) {
      ops.emplace_back().op = which.op->name;
    }
    try {
      add(which, cases::compare_platforms(which, selected.platforms[0], selected.platforms[1]),
          ops.back());
    } catch (const cases::Unsupported& reason) {
      ops.back().skipped = reason.what();
    }
  }
  return ops;
}

// Rounds down, so that 100 % is never shown unless all elements are equal.
std::string share_of(const OpAgreement& op) {
  const double share = static_cast<double>(op.equal) / static_cast<double>(op.elements);
  return op.equal == op.elements ? "all" : fmt::format("{:.3f} %", 100 * std::min(share, 0.99999));
}

void print(const std::vector<OpAgreement>& ops, const Selected& selected) {
  put(fmt::format("{} against {}: outputs of one launch with real values, element by element\n",
                  selected.platforms[0], selected.platforms[1]));
  put(fmt::format("{:<46}{:>6}{:>12}{:>12}{:>10}  {}\n", "", "cases", "elements", "equal bits",
                  "distance", "largest distance (ulp, codes or numbers) at"));
  for (const OpAgreement& op : ops) {
    if (op.elements == 0) {
      put(fmt::format("{:<46}{}\n", op.op, op.skipped));
      continue;
    }
    put(fmt::format("{:<46}{:>6}{:>12}{:>12}{:>10.4g}  {}\n", op.op, op.cases, op.elements,
                    share_of(op), op.distance, op.where));
  }
}

std::string to_json(const std::vector<OpAgreement>& ops, const Selected& selected) {
  nlohmann::ordered_json json{{"platforms", selected.platforms}};
  for (const OpAgreement& op : ops) {
    json["ops"].push_back({{"op", op.op},
                           {"cases", op.cases},
                           {"elements", op.elements},
                           {"equal", op.equal},
                           {"distance", op.distance},
                           {"where", op.where},
                           {"skipped", op.skipped}});
  }
  return json.dump(1) + "\n";
}

}  // namespace

int agreement_command(const AgreementArguments& arguments) {
  if (!arguments.plugins.empty()) return plugin_agreement(arguments);
  const Selected selected = select(arguments.selection);
  if (selected.platforms.size() != 2) {
    throw UsageError("agreement wants two platforms: --platform sim-sm90 --platform cuda-sm90");
  }
  for (const std::string& platform : selected.platforms) {
    const std::string why = device::why_unavailable(platform);
    if (!why.empty()) throw UsageError(platform + ": " + why);
  }
  if (!arguments.json.empty()) check_writable(arguments.json);
  const std::vector<OpAgreement> ops = measure(selected);
  if (ops.empty()) throw UsageError("no eager case that compares anything is selected");
  print(ops, selected);
  if (!arguments.json.empty()) write_file(arguments.json, to_json(ops, selected));
  return 0;
}

}  // namespace plumb::tools
