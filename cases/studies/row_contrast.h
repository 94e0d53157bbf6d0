// SPDX-License-Identifier: Apache-2.0
//
// Finds the property of their inputs that separates failing rows of a tensor from passing ones:
// "rows fail where the mean square of x is at most 3.1e-08".
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/studies/separation.h"

namespace plumb::cases {

class RowContrast {
 public:
  // Adds the live rows of a verdict, if the op promises at least one of their columns. Ignores
  // verdicts on a sample of rows, and tensors whose failure names no row (a bias).
  void add(const Problem& problem, const Launched& launched,
           const std::vector<TensorReport>& reports);

  // The most convincing sentence that holds for all rows; "" if there is none.
  std::string text() const;

 private:
  struct Rows {
    // Observations of each property, by the property's name in reports.
    std::map<std::string, std::vector<Observation>> properties;
    std::size_t count = 0;  // all rows; a property may leave out rows of zeros
    std::set<std::pair<bool, std::vector<double>>>
        seen;  // (failed, values) pairs, so that equal observations count once
  };
  void add(const HostTensor& tensor, const Problem& problem, const Launched& launched,
           const TensorReport& report);

  std::map<std::string, Rows> tensors_;
};

}  // namespace plumb::cases
