// SPDX-License-Identifier: Apache-2.0
//
// The launch of a case that its golden records: real values at the captured size, threads in order,
// streams early. Gives its results as a golden and to the judge.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/drivers/session.h"
#include "golden/model.h"

namespace plumb::golden {

// Whether the case is one that goldens are recorded for: an eager case of a row with `golden`. It
// has none if its op is not deterministic, or if the platform has no goldens.
bool wants_golden(const cases::Case& which);

// The results of a launch with these inputs, as a golden without provenance. `whole`, unless
// nullptr, gets every output with all elements, whatever its size.
CaseGolden golden_of(const cases::Case& which, const cases::Problem& problem,
                     const cases::Launched& launched, std::vector<TensorGolden>* whole = nullptr);

class GoldenCapture {
 public:
  // Runs the launch. Throws cases::Unsupported and device::DeviceError.
  GoldenCapture(const cases::Case& which, const cases::RunOptions& options);

  // Without provenance.
  const CaseGolden& golden() const { return golden_; }
  const device::Properties& device() const { return properties_; }
  const std::string& plugin() const { return plugin_; }  // as RunOptions::plugin
  // Whether the op promises the same bits every time. Only such ops have goldens.
  bool deterministic() const { return declared_.deterministic != 0; }
  // The outputs of golden(), each with all elements whatever its size.
  const std::vector<TensorGolden>& outputs() const { return outputs_; }
  // Reasons why the reference rejects the results; empty: it does not.
  const std::vector<std::string>& rejected() const;
  // Whether the reference rejects this output. True of every output if a line of rejected() is
  // about no output (a write next to the tensors).
  bool rejects(const std::string& output) const;
  // Largest difference between two right results per element of an output: by their arithmetic, and
  // by the rounding of stored values. nullptr if the reference has no estimate (integers, codes,
  // parts of a cache).
  struct Bounds {
    std::vector<double> arithmetic, rounding;
  };
  const Bounds* bounds_of(const std::string& output) const;

 private:
  void judge() const;
  void keep_bounds(const cases::Expectation& one) const;
  void reject(const cases::Expectation& one, const std::vector<std::string>& failures) const;

  device::Properties properties_;
  std::string plugin_;
  std::unique_ptr<cases::Problem> problem_;
  plumb_numerics declared_ = {};
  cases::Step step_;
  cases::TensorSet stored_;
  std::vector<TensorGolden> outputs_;
  CaseGolden golden_;
  // Computed when first needed, because most results are unchanged.
  mutable bool judged_ = false;
  mutable std::vector<std::string> rejected_;
  mutable std::set<std::string> rejected_outputs_;
  mutable bool rejects_all_ = false;
  mutable std::map<std::string, Bounds> bounds_;
};

}  // namespace plumb::golden
