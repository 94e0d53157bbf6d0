// SPDX-License-Identifier: Apache-2.0
#include "golden/regenerate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "cases/judge/judge.h"
#include "golden/dependence.h"

namespace plumb::golden {

namespace {

CaseGolden with_provenance(const NewResult& result, const Author& author) {
  CaseGolden golden = result.golden;
  golden.provenance = result.provenance();
  golden.provenance["commit"] = author.commit;
  golden.provenance["generator"] = author.generator;
  golden.provenance["reason"] = author.reason;
  return golden;
}

// Adds sketches to tensors that lack one, and all values to tensors that are now stored in full.
// `computed` has the same results. Returns whether it added any.
bool add_sketches(const CaseGolden& computed, CaseGolden& golden) {
  bool added = false;
  for (std::size_t i = 0; i < golden.outputs.size(); ++i) {
    TensorGolden& tensor = golden.outputs[i];
    const TensorGolden& now = computed.outputs[i];
    if (!tensor.is_sampled()) continue;
    if (now.is_sampled() && (tensor.sketch || !now.sketch)) continue;
    tensor = now;
    added = true;
  }
  return added;
}

void add_case(const GoldenFile& stored, const NewResult& result, const Author& author,
              GoldenChanges& difference) {
  const std::string& id = result.golden.id;
  const CaseGolden* had = stored.find(id);
  if (had && results_digest(*had) == results_digest(result.golden)) {
    difference.next.cases.push_back(*had);
    ++difference.unchanged;
    if (author.adds_sketches) {
      difference.sketched += add_sketches(result.golden, difference.next.cases.back());
    }
    return;
  }
  Change change{.kind = had ? Change::Fate::moved : Change::Fate::added,
                .id = id,
                .rejected = result.rejected()};
  if (had) change.drifts = result.drifts(*had);
  difference.changes.push_back(std::move(change));
  difference.next.cases.push_back(with_provenance(result, author));
}

}  // namespace

std::string_view name_of(Change::Fate kind) {
  switch (kind) {
    case Change::Fate::added: return "new";
    case Change::Fate::moved: return "moved";
    case Change::Fate::removed: return "gone";
  }
  return "?";
}

std::optional<NewResult> result_of(const cases::Case& which, const cases::RunOptions& options) {
  const auto capture = std::make_shared<const GoldenCapture>(which, options);
  if (!capture->deterministic()) return std::nullopt;
  return NewResult{.golden = capture->golden(),
                   .provenance =
                       [which, options, capture] {
                         Provenance provenance =
                             provenance_of(which.op->name, capture->device(), capture->plugin());
                         if (capture->device().simulated && capture->plugin().empty()) {
                           provenance[std::string(kDependsOn)] =
                               dependence_of(which, options, *capture);
                         }
                         return provenance;
                       },
                   .drifts =
                       [capture](const CaseGolden& had) {
                         return drift_between(had, capture->golden(), capture.get());
                       },
                   .rejected = [capture] { return capture->rejected(); }};
}

GoldenChanges difference_of(const GoldenFile& stored, const std::vector<cases::Case>& wanted,
                            const std::vector<std::string>& known, const cases::RunOptions& options,
                            const Author& author) {
  std::vector<Compute> all;
  for (const cases::Case& which : wanted) {
    all.push_back([&which, &options] { return result_of(which, options); });
  }
  return difference_of(stored, all, known, author);
}

GoldenChanges difference_of(const GoldenFile& stored, const std::vector<Compute>& wanted,
                            const std::vector<std::string>& known, const Author& author) {
  GoldenChanges difference;
  difference.next = stored;
  difference.next.cases.clear();
  for (const Compute& compute : wanted) {
    if (const auto result = compute()) add_case(stored, *result, author, difference);
  }
  for (const CaseGolden& golden : stored.cases) {
    if (difference.next.cases.end() !=
        std::find_if(difference.next.cases.begin(), difference.next.cases.end(),
                     [&](const CaseGolden& other) { return other.id == golden.id; })) {
      continue;
    }
    if (std::find(known.begin(), known.end(), golden.id) != known.end()) {
      difference.next.cases.push_back(golden);
    } else {
      difference.changes.push_back({.kind = Change::Fate::removed, .id = golden.id});
    }
  }
  std::sort(difference.next.cases.begin(), difference.next.cases.end(),
            [](const CaseGolden& a, const CaseGolden& b) { return a.id < b.id; });
  if (!difference.empty()) {
    difference.next.history.push_back(history_line(difference, author));
  }
  return difference;
}

std::string history_line(const GoldenChanges& difference, const Author& author) {
  std::string text;
  for (const Change& change : difference.changes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", change.id, name_of(change.kind));
  }
  if (difference.sketched > 0) {
    text += fmt::format("{}sketches or values of {}", text.empty() ? "" : ", ",
                        cases::counted(difference.sketched, "case"));
  }
  return fmt::format("{}: {}: {} ({})", author.commit, author.generator, author.reason, text);
}

std::string text_of(const Change& change) {
  std::string text = fmt::format("{:<6}{}\n", name_of(change.kind), change.id);
  for (const TensorDrift& drift : change.drifts) {
    text += fmt::format("      {}\n", text_of(drift));
    const std::string histogram = histogram_text(drift);
    if (!histogram.empty()) text += fmt::format("      {} by ulp: {}\n", drift.tensor, histogram);
  }
  for (const std::string& line : change.rejected) text += fmt::format("      rejected: {}\n", line);
  return text;
}

}  // namespace plumb::golden
