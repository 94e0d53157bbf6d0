// SPDX-License-Identifier: Apache-2.0
//
// The one launch of a case that its golden is about: real values at the captured size, threads in
// order, streams early. What it stored, as a golden, and as the judge sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/drivers/session.h"
#include "golden/model.h"

namespace plumb::golden {

// Has the case a golden, on a platform that has any?
bool wants_golden(const cases::Case& which);

// What a launch with these inputs stored, as a golden without provenance. `whole`, if anybody wants
// it: every output with all elements whatever its size.
CaseGolden golden_of(const cases::Case& which, const cases::Problem& problem,
                     const cases::Launched& launched, std::vector<TensorGolden>* whole = nullptr);

class GoldenCapture {
 public:
  // Runs it. Throws cases::Unsupported and device::DeviceError.
  GoldenCapture(const cases::Case& which, const cases::RunOptions& options);

  // Without provenance.
  const CaseGolden& golden() const { return golden_; }
  const device::Properties& device() const { return properties_; }
  // Does the op promise the same bits every time? Goldens are of such results only.
  bool deterministic() const { return declared_.deterministic != 0; }
  // Every output as golden() has it, but with all elements whatever its size.
  const std::vector<TensorGolden>& outputs() const { return outputs_; }
  // Empty, or why the reference rejects the results.
  const std::vector<std::string>& rejected() const;
  // How far apart two honest results may be, element by element of an output: by their arithmetic,
  // and by the rounding of what they store. None where the reference estimates none (integers,
  // codes, parts of a cache).
  struct Bounds {
    std::vector<double> arithmetic, rounding;
  };
  const Bounds* bounds_of(const std::string& output) const;

 private:
  void judge() const;
  void keep_bounds(const cases::Expectation& one) const;

  device::Properties properties_;
  std::unique_ptr<cases::Problem> problem_;
  plumb_numerics declared_ = {};
  cases::Step step_;
  cases::TensorSet stored_;
  std::vector<TensorGolden> outputs_;
  CaseGolden golden_;
  // Made when somebody asks: most results are as they were.
  mutable bool judged_ = false;
  mutable std::vector<std::string> rejected_;
  mutable std::map<std::string, Bounds> bounds_;
};

}  // namespace plumb::golden
