// SPDX-License-Identifier: Apache-2.0
//
// Which requests or steps of a schedule are kept: "3,17,20-22", "none"; "" keeps all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::cases {

class KeepList {
 public:
  KeepList() = default;                                  // keeps all
  explicit KeepList(std::vector<std::int64_t> numbers);  // in any order
  // Throws std::invalid_argument, which says what is wrong with the text.
  static KeepList from(std::string_view text);

  bool keeps_all() const { return all_; }
  bool keeps(std::int64_t number) const;
  std::string text() const;  // as from reads it
  bool operator==(const KeepList& other) const;

 private:
  bool all_ = true;
  std::vector<std::int64_t> numbers_;  // ascending
};

}  // namespace plumb::cases
