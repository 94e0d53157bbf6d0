// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace plumb::cases {

// A row or case file that cannot be used; the message names file, line and what is wrong.
class BadRow : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace plumb::cases
