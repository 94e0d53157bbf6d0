// SPDX-License-Identifier: Apache-2.0
//
// What one thread of this machine can do: copy, multiply and add, and evaluate functions, in the
// double precision and with the code that references use.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::tools {

struct Rates {
  double bytes = 0;       // per second, read or written, of a copy that no cache holds
  double operations = 0;  // two per multiply-add, of Eigen's matrix product
  double exps = 0, logs = 0, rsqrts = 0;

  double seconds_of_bytes(const cases::ReferenceWork& work) const { return work.bytes / bytes; }
  double seconds_of_operations(const cases::ReferenceWork& work) const;
  // Bytes travel while operations go on.
  double floor(const cases::ReferenceWork& work) const;
};

class RateTasks {
 public:
  RateTasks();
  // One per rate, in the order of Rates.
  std::vector<std::function<void()>> tasks();
  // From the seconds that each of the tasks took.
  static Rates rates(const std::vector<double>& seconds);

 private:
  void copy();
  void multiply();
  void exp();
  void log();
  void rsqrt();

  std::vector<double> from_, to_, numbers_, results_;
  Eigen::MatrixXd left_, right_, product_;
};

}  // namespace plumb::tools
