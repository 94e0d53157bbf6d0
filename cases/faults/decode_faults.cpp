// SPDX-License-Identifier: Apache-2.0
#include "cases/faults/decode_faults.h"

#include "cases/faults/decode_fault_lists.h"

namespace plumb::cases {

namespace {

std::vector<DecodeFault> make_faults() {
  std::vector<DecodeFault> all;
  for (const auto& make : {faults_of_42604, faults_of_42982, faults_of_43746, faults_of_42810,
                           faults_of_42444, faults_of_hazards}) {
    const std::vector<DecodeFault> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

const std::vector<DecodeFault>& all_decode_faults() {
  static const std::vector<DecodeFault> faults = make_faults();
  return faults;
}

}  // namespace plumb::cases
