// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/problem.h"

namespace plumb::cases {

std::vector<TensorReport> Problem::judge(const Step& step, const TensorSet& tensors,
                                         const reference::Numerics& numerics,
                                         const plumb_numerics& declared,
                                         VerdictSeconds& seconds) const {
  const Expectations expectations = [&] {
    const Stopwatch watch(seconds.reference);
    return expect(step, tensors, numerics, declared);
  }();
  const Stopwatch watch(seconds.judge);
  return compare(expectations);
}

}  // namespace plumb::cases
