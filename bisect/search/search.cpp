// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/search.h"

#include <algorithm>
#include <bit>
#include <set>

namespace plumb::bisect {

namespace {

// Candidates next to one without a verdict often have none either, so each such answer in a row
// doubles the distance from the middle.
std::string choose(const std::vector<std::string>& order, const std::set<std::string>& unknown,
                   std::size_t in_a_row) {
  const std::size_t from =
      std::min(order.size() - 1, (std::size_t{1} << std::min<std::size_t>(in_a_row, 30)) - 1);
  const auto is_open = [&](const std::string& key) { return !unknown.contains(key); };
  auto found =
      std::find_if(order.begin() + static_cast<std::ptrdiff_t>(from), order.end(), is_open);
  if (found == order.end()) found = std::find_if(order.begin(), order.end(), is_open);
  return found == order.end() ? "" : *found;
}

}  // namespace

int steps_left(std::size_t candidates) {
  return candidates < 2 ? 0 : static_cast<int>(std::bit_width(candidates - 1));
}

std::vector<std::size_t> halving_order(std::size_t after, std::size_t before) {
  std::vector<std::size_t> order;
  for (std::size_t i = after + 1; i < before; ++i) order.push_back(i);
  const auto lesser_side = [&](std::size_t i) { return std::min(i - after, before - i); };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lesser_side(a) != lesser_side(b) ? lesser_side(a) > lesser_side(b) : a < b;
  });
  return order;
}

FirstBad first_bad(std::string bad, std::vector<std::string> goods, const Order& order_of,
                   const AskAbout& ask) {
  std::set<std::string> unknown;
  std::size_t in_a_row = 0;
  for (;;) {
    std::vector<std::string> order = order_of(bad, goods);
    const std::string key = order.empty() ? "" : choose(order, unknown, in_a_row);
    if (key.empty()) {
      order.push_back(bad);
      return {bad, goods, order};
    }
    const Verdict verdict = ask(key, order.size() + 1);
    if (verdict == Verdict::bad) bad = key;
    if (verdict == Verdict::good) goods.push_back(key);
    if (verdict == Verdict::cannot_say) unknown.insert(key);
    in_a_row = verdict == Verdict::cannot_say ? in_a_row + 1 : 0;
  }
}

}  // namespace plumb::bisect
