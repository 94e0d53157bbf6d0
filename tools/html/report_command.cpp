// SPDX-License-Identifier: Apache-2.0
//
// plumb report: turns JSON reports into an HTML page.
#include <algorithm>

#include "tools/commands.h"
#include "tools/html/report_page.h"
#include "tools/output.h"
#include "tools/report.h"

namespace plumb::tools {

int report_command(const ReportArguments& arguments) {
  check_writable(arguments.output);
  std::vector<ReadReport> reports;
  for (const std::string& path : arguments.reports) {
    if (path == arguments.output) throw UsageError("-o names a report that is read: " + path);
    reports.push_back(read_report(path));
  }
  write_file(arguments.output, report_page(reports));
  return 0;
}

}  // namespace plumb::tools
