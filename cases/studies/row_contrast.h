// SPDX-License-Identifier: Apache-2.0
//
// Which rows of a tensor fail and which pass, and the property of their inputs that tells these
// apart: "rows fail where the mean square of x is at most 3.1e-08".
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
  // The live rows of a verdict of which the op promises at least one column. Without effect for a
  // verdict on a sample of rows, and for a tensor whose failure names no row (a bias).
  void add(const Problem& problem, const Launched& launched,
           const std::vector<TensorReport>& reports);

  // The sharpest statement that holds for all rows; "" if there is none.
  std::string text() const;

 private:
  struct Rows {
    std::map<std::string, std::vector<Observation>> properties;  // by their names in a report
    std::size_t count = 0;  // a property may be that of rows other than zero alone
    std::set<std::pair<bool, std::vector<double>>>
        seen;  // verdicts with inputs: each is counted once
  };
  void add(const HostTensor& tensor, const Problem& problem, const Launched& launched,
           const TensorReport& report);

  std::map<std::string, Rows> tensors_;
};

}  // namespace plumb::cases
