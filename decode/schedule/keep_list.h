// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the requests or steps of a schedule that are kept: "3,17,20-22" or "none". An empty
// text keeps all.
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
  // Throws std::invalid_argument with what is wrong in the text.
  static KeepList from(std::string_view text);

  bool keeps_all() const { return all_; }
  bool keeps(std::int64_t number) const;
  std::string text() const;  // in the format that from() reads
  bool operator==(const KeepList& other) const;

 private:
  bool all_ = true;
  std::vector<std::int64_t> numbers_;  // ascending
};

}  // namespace plumb::cases
