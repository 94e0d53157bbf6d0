// SPDX-License-Identifier: Apache-2.0
//
// Rates of one thread of this machine for copies, multiply-adds and functions, in double precision
// and with the code that references use.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <vector>

#include "cases/tables/problem.h"

namespace plumb::tools {

struct Rates {
  double bytes = 0;       // per second, reads and writes, of a copy larger than the caches
  double operations = 0;  // per second in Eigen's matrix product; a multiply-add is two
  double exps = 0, logs = 0, rsqrts = 0;

  double seconds_of_bytes(const cases::ReferenceWork& work) const { return work.bytes / bytes; }
  double seconds_of_operations(const cases::ReferenceWork& work) const;
  // The larger of both times, because memory accesses overlap with operations.
  double floor(const cases::ReferenceWork& work) const;
};

class RateTasks {
 public:
  RateTasks();
  // One task per rate, in the order of Rates' members.
  std::vector<std::function<void()>> tasks();
  // `seconds`: time of each task, in the same order.
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
