// SPDX-License-Identifier: Apache-2.0
//
// What a change of results would do to a store's files: found out first, written when it is wanted.
#pragma once

#include <string>
#include <vector>

#include "golden/compare.h"
#include "golden/store.h"

namespace plumb::golden {

// One case whose golden is new, moved, or gone.
struct Change {
  enum class Fate { added, moved, removed };
  Fate kind = Fate::added;
  std::string id;
  std::vector<TensorDrift> drifts;    // of moved ones
  std::vector<std::string> rejected;  // what the reference says against it: not to be written
};

// The difference between an op's goldens and their successors.
struct GoldenChanges {
  GoldenFile next;
  std::vector<Change> changes;
  int unchanged = 0;
};

// Who regenerates, why, and with which program.
struct Author {
  std::string commit, generator, reason;
};

// Of all cases of one op that `wanted` names: what they compute now, in the place of what `stored`
// has. Cases of the store that are neither wanted nor `known` are removed. A case that computes
// what it did keeps its golden as it is, provenance and all.
GoldenChanges difference_of(const GoldenFile& stored, const std::vector<cases::Case>& wanted,
                            const std::vector<std::string>& known, const cases::RunOptions& options,
                            const Author& author);

// The line that the difference leaves in the file's history.
std::string history_line(const GoldenChanges& difference, const Author& author);

// The difference in words, a line for each case and indented ones for its tensors.
std::string text_of(const Change& change);

}  // namespace plumb::golden
