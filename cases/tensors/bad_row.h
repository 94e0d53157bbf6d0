// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace plumb::cases {

// Thrown for a row or case file that cannot be used. The message names file, line and cause.
class BadRow : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace plumb::cases
