// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/row.h"

namespace plumb::cases {

std::int64_t Row::integer(std::string_view parameter) const {
  const auto found = integers.find(parameter);
  if (found == integers.end()) {
    throw std::out_of_range(op + " declares no parameter " + std::string(parameter));
  }
  return found->second;
}

std::int64_t Row::launched(std::string_view parameter) const {
  return picked_from > 0 ? picked_from : integer(parameter);
}

std::string_view Row::word(std::string_view parameter) const {
  const auto found = words.find(parameter);
  return found == words.end() ? std::string_view{} : std::string_view(found->second);
}

float Row::real(std::string_view member, float otherwise) const {
  const auto found = reals.find(member);
  return found == reals.end() ? otherwise : found->second;
}

}  // namespace plumb::cases
