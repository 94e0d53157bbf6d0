// SPDX-License-Identifier: Apache-2.0
#include "decode/schedule/keep_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace plumb::cases {

namespace {

constexpr std::int64_t kMost = 1'000'000;  // bounds the memory of a mistyped range

// Parses and removes a number at the front of the text.
std::int64_t take_number(std::string_view& rest, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || number < 0 || number > kMost) {
    throw std::invalid_argument(
        fmt::format("a keep list is numbers and ranges like 3,17,20-22, not \"{}\"", text));
  }
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

bool take(char c, std::string_view& rest) {
  if (!rest.starts_with(c)) return false;
  rest.remove_prefix(1);
  return true;
}

}  // namespace

KeepList::KeepList(std::vector<std::int64_t> numbers) : all_(false), numbers_(std::move(numbers)) {
  std::sort(numbers_.begin(), numbers_.end());
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
}

bool KeepList::keeps(std::int64_t number) const {
  return all_ || std::binary_search(numbers_.begin(), numbers_.end(), number);
}

KeepList KeepList::from(std::string_view text) {
  if (text.empty()) return {};
  if (text == "none") return KeepList(std::vector<std::int64_t>{});
  std::vector<std::int64_t> numbers;
  std::string_view rest = text;
  do {
    const std::int64_t first = take_number(rest, text);
    const std::int64_t last = take('-', rest) ? take_number(rest, text) : first;
    if (last < first) {
      throw std::invalid_argument(
          fmt::format("a range of a keep list goes up, not {}-{}", first, last));
    }
    for (std::int64_t i = first; i <= last; ++i) numbers.push_back(i);
  } while (take(',', rest));
  if (!rest.empty()) take_number(rest, text);  // throws, because text is left over
  return KeepList(std::move(numbers));
}

std::string KeepList::text() const {
  if (all_) return "";
  if (numbers_.empty()) return "none";
  std::string text;
  for (auto at = numbers_.begin(); at != numbers_.end();) {
    const std::int64_t first = *at;
    std::int64_t last = first;
    for (++at; at != numbers_.end() && *at == last + 1; ++at) last = *at;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
  }
  return text;
}

bool KeepList::operator==(const KeepList& other) const {
  return all_ == other.all_ && numbers_ == other.numbers_;
}

}  // namespace plumb::cases
