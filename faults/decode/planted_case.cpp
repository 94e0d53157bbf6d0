// SPDX-License-Identifier: Apache-2.0
#include "faults/decode/planted_case.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cases/tables/case_file.h"
#include "faults/decode/decode_faults.h"

namespace plumb::cases {

namespace {

const DecodeFault& find_fault(const Row& row) {
  std::vector<std::string> names;
  for (const auto* library : {&all_decode_faults(), &faults_within_numerics()}) {
    for (const DecodeFault& fault : *library) {
      if (fault.name == row.word("fault")) return fault;
      names.push_back(fault.name);
    }
  }
  const std::string nearest = nearest_name(row.word("fault"), names);
  throw BadRow(fmt::format("{}: unknown fault \"{}\"{}", row.where, row.word("fault"),
                           nearest.empty() ? "; plumb list --faults lists them"
                                           : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

}  // namespace

ServedCase planted_case(const StepCase& which, const std::string& platform, std::uint64_t seed) {
  DecodeSetup base{.platform = platform};
  if (!which.row.word("fault").empty()) base = find_fault(which.row).inject(std::move(base));
  return served_case(which, std::move(base), seed);
}

}  // namespace plumb::cases
