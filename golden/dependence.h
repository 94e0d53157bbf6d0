// SPDX-License-Identifier: Apache-2.0
//
// Finds out which traits of a simulated platform a result depends on, by running the case with one
// trait changed. This explains differences between goldens of two platforms.
#pragma once

#include <string>

#include "golden/capture.h"

namespace plumb::golden {

// Names of traits, in this order, joined by ", ": "wave order" (32 or 64 lanes add in another
// order), "FP8 dialect", "split plan" (how work is divided among 132 or 304 multiprocessors).
// "nothing" if none of them matters.
std::string dependence_of(const cases::Case& which, const cases::RunOptions& options,
                          const GoldenCapture& capture);

// The traits that differ between two simulated platforms and that one of the two results depends
// on, in the same words; "" if none explains it.
std::string causes_of(const CaseGolden& a, const CaseGolden& b);

}  // namespace plumb::golden
