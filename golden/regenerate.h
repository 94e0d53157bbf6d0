// SPDX-License-Identifier: Apache-2.0
//
// Computes how new results would change the files of a store, before they are written.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/compare.h"
#include "golden/provenance.h"
#include "golden/store.h"

namespace plumb::golden {

// A case whose golden is added, moved or removed.
struct Change {
  enum class Fate { added, moved, removed };
  Fate kind = Fate::added;
  std::string id;
  std::vector<TensorDrift> drifts;    // for moved goldens
  std::vector<std::string> rejected;  // why the reference rejects it; then not written
};
std::string_view name_of(Change::Fate kind);  // "new", "moved", "gone"

// Differences between an op's goldens and their successors.
struct GoldenChanges {
  GoldenFile next;
  std::vector<Change> changes;
  int unchanged = 0;
  int sketched = 0;  // unchanged cases that got a missing sketch
  bool empty() const { return changes.empty() && sketched == 0; }
};

// Commit, program and reason of a regeneration.
struct Author {
  std::string commit, generator, reason;
  bool adds_sketches = false;  // to goldens with unchanged results, too
};

// The result of a case now, in the form of a golden, with what is computed only if it differs from
// the stored one.
struct NewResult {
  CaseGolden golden;                       // without provenance
  std::function<Provenance()> provenance;  // without commit, generator and reason
  std::function<std::vector<TensorDrift>(const CaseGolden& had)> drifts;
  std::function<std::vector<std::string>()> rejected;  // why the reference rejects it
};
// Computes a case; nullopt: its results are not the same every time.
using Compute = std::function<std::optional<NewResult>()>;

// Launches a case of an op. nullopt: it does not promise the same bits every time. Throws
// cases::Unsupported and device::DeviceError.
std::optional<NewResult> result_of(const cases::Case& which, const cases::RunOptions& options);

// Replaces the goldens of these cases in `stored`, as the function below.
GoldenChanges difference_of(const GoldenFile& stored, const std::vector<Compute>& wanted,
                            const std::vector<std::string>& known, const Author& author);

// Computes the `wanted` cases of one op and replaces their goldens in `stored`. Stored cases that
// are neither wanted nor `known` are removed. A case with unchanged results keeps its golden,
// including the provenance.
GoldenChanges difference_of(const GoldenFile& stored, const std::vector<cases::Case>& wanted,
                            const std::vector<std::string>& known, const cases::RunOptions& options,
                            const Author& author);

// Line for the file's history.
std::string history_line(const GoldenChanges& difference, const Author& author);

// Text of a change: one line for the case, and indented lines for its tensors.
std::string text_of(const Change& change);

}  // namespace plumb::golden
