// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/sparse_mla/plan_defects.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/judge/unwritten.h"

namespace plumb::cases {

void report_defects(const HostTensor& stored, const std::vector<PlanDefect>& defects,
                    std::string_view rows_are, TensorReport& report) {
  constexpr std::size_t kMostLines = 3;
  for (std::size_t i = 0; i < defects.size(); ++i) {
    if (defects[i].row >= 0) report.wrong_rows.push_back(defects[i].row);
    if (i >= kMostLines) continue;
    report.failures.push_back(fmt::format("{}: {}", report.tensor, defects[i].text));
  }
  if (defects.size() > kMostLines) {
    report.failures.push_back(
        fmt::format("{}: {} more defects", report.tensor, defects.size() - kMostLines));
  }
  std::sort(report.wrong_rows.begin(), report.wrong_rows.end());
  const auto last = std::unique(report.wrong_rows.begin(), report.wrong_rows.end());
  report.wrong_rows.erase(last, report.wrong_rows.end());
  report.wrong_elements = std::max<std::int64_t>(std::ssize(report.wrong_rows), 1);
  report.margin = reference::kInfinity;
  const auto unwritten =
      std::count_if(report.wrong_rows.begin(), report.wrong_rows.end(),
                    [&](std::int64_t row) { return row_holds_poison(stored, row); });
  if (unwritten == 0) return;
  report.pattern = fmt::format("{} of {} wrong {}: {}", unwritten, report.wrong_rows.size(),
                               rows_are, kNeverWritten);
}

}  // namespace plumb::cases
