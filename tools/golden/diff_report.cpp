// SPDX-License-Identifier: Apache-2.0
#include "tools/golden/diff_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/golden/drift_json.h"
#include "tools/html/report_page.h"
#include "tools/output.h"
#include "tools/report.h"

namespace plumb::tools {

namespace {

using nlohmann::ordered_json;

ordered_json to_json(const DifferentCase& one) {
  ordered_json json{
      {"case", one.change.id}, {"platform", one.platform}, {"change", name_of(one.change.kind)}};
  if (!one.because_of.empty()) json["because_of"] = one.because_of;
  if (!one.change.rejected.empty()) json["rejected"] = one.change.rejected;
  json["drift"] = ordered_json::array();
  for (const golden::TensorDrift& drift : one.change.drifts) {
    json["drift"].push_back(drift_to_json(drift));
  }
  return json;
}

ordered_json to_json(const GoldenDiff& diff) {
  ordered_json json{{"schema", 1},
                    {"before", diff.before},
                    {"after", diff.after},
                    {"same", diff.same},
                    {"different", diff.cases.size()},
                    {"because_of", ordered_json::object()},
                    {"results", ordered_json::object()},
                    {"cases", ordered_json::array()}};
  for (const auto& [cause, cases] : diff.causes()) json["because_of"][cause] = cases;
  for (const auto& [file, digest] : diff.results) json["results"][file] = digest;
  for (const DifferentCase& one : diff.cases) json["cases"].push_back(to_json(one));
  return json;
}

}  // namespace

std::map<std::string, std::size_t> GoldenDiff::causes() const {
  std::map<std::string, std::size_t> counts;
  for (const DifferentCase& one : cases) {
    if (!one.because_of.empty()) ++counts[one.because_of];
  }
  return counts;
}

bool prints_text(const GoldenArguments& arguments) { return arguments.json != "-"; }

void check_diff_reports(const GoldenArguments& arguments) {
  if (arguments.html == "-") throw UsageError("--html names a file");
  if (!arguments.html.empty() && arguments.html == arguments.json) {
    throw UsageError("--html names the file of another report");
  }
  for (const std::string& path : {arguments.json, arguments.html}) {
    if (path.empty() || path == "-") continue;
    if (path == arguments.first || path == arguments.second) {
      throw UsageError(path + ": is compared, and no report goes there");
    }
    check_writable(path);
  }
}

void write_diff_reports(const GoldenArguments& arguments, const GoldenDiff& diff) {
  if (arguments.json.empty() && arguments.html.empty()) return;
  const std::string text =
      to_json(diff).dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  if (arguments.json == "-") {
    put(text);
  } else if (!arguments.json.empty()) {
    write_file(arguments.json, text);
  }
  if (arguments.html.empty()) return;
  const std::string name = fmt::format("{} and {}", diff.before, diff.after);
  write_file(arguments.html, report_page({parse_report(name, text)}));
}

}  // namespace plumb::tools
