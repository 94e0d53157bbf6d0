// SPDX-License-Identifier: Apache-2.0
#include "tools/html/report_page.h"

#include <fmt/format.h>
#include <plumb_page_files.h>

#include <string_view>
#include <utility>

#include "tools/html/golden_page.h"
#include "tools/html/other_pages.h"
#include "tools/html/run_history.h"
#include "tools/html/run_page.h"
#include "tools/report.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using nlohmann::ordered_json;

std::string file_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Replaces each @NAME@ of the page by its text. Inserted text is not searched again, because a
// report may contain such words.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string_view, std::string>>& texts) {
  std::string whole;
  while (!page.empty()) {
    std::size_t at = page.size();
    const std::pair<std::string_view, std::string>* next = nullptr;
    for (const auto& one : texts) {
      const std::size_t found = page.find(one.first);
      if (found >= at) continue;
      at = found;
      next = &one;
    }
    whole += page.substr(0, at);
    if (next == nullptr) break;
    whole += next->second;
    page.remove_prefix(at + next->first.size());
  }
  return whole;
}

void check_kinds(const std::vector<ReadReport>& reports) {
  for (const ReadReport& one : reports) {
    if (reports.size() == 1) return;
    if (one.kind == ReportKind::run) continue;
    throw UsageError(one.path + ": several reports make a page if all are of plumb run");
  }
}

}  // namespace

std::string script_safe(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string report_page(const std::vector<ReadReport>& reports) {
  check_kinds(reports);
  const ReadReport& last = reports.back();
  ordered_json data{{"file", clipped(file_name(last.path), 200)}};
  std::string text;
  switch (last.kind) {
    case ReportKind::run:
      data["kind"] = "run";
      data.update(run_data(last));
      if (reports.size() > 1) data["history"] = run_history(reports);
      text = failures_as_text(data);
      break;
    case ReportKind::faults:
      data["kind"] = "faults";
      data.update(faults_data(last));
      text = faults_as_text(data);
      break;
    case ReportKind::judge:
      data["kind"] = "judge";
      data.update(judge_data(last));
      text = judge_as_text(data);
      break;
    case ReportKind::goldens:
      data["kind"] = "goldens";
      data.update(goldens_data(last));
      text = goldens_as_text(data);
      break;
  }
  return filled(
      kPageTemplate,
      {{"@TITLE@", escape_xml("plumb report: " + data["file"].get<std::string>())},
       {"@STYLE@", std::string(kPageStyle)},
       {"@SCRIPT@", std::string(kPageScript)},
       {"@TEXT@", escape_xml(text)},
       {"@DATA@", script_safe(data.dump(-1, ' ', false, ordered_json::error_handler_t::replace))}});
}

}  // namespace plumb::tools
