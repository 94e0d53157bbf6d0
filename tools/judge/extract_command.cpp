// SPDX-License-Identifier: Apache-2.0
#include "tools/judge/extract_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "process/shell.h"
#include "tools/judge/trace_worker.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/selection.h"
#include "trace/export/extract.h"

namespace plumb::tools {

int extract_command(const JudgeArguments& arguments, const std::string& path, std::int64_t call) {
  const trace::ExtractRequest request{path, call};
  const auto answer = TraceWorker(trace::kExtractRole)
                          .ask<trace::ExtractAnswer>(request, path + ": extracting a call");
  if (!answer.why_not.empty()) {
    throw UsageError(
        fmt::format("call {} cannot be extracted: {}", arguments.extract, answer.why_not));
  }
  std::string file = arguments.output;
  if (file.empty()) {
    file = answer.row + ".row";
    std::ranges::replace(file, '/', '.');
  }
  check_writable(file);
  write_file(file, answer.file);
  put(fmt::format("{}: {}\nplumb run --cases {}\n", file, answer.row, process::shell_quoted(file)));
  return 0;
}

}  // namespace plumb::tools
