// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/stray_writes.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumb::cases {

namespace {

// Marks the elements of the tensor's memory that lie between rows.
std::vector<bool> gap_elements(const HostTensor& tensor) {
  std::vector<bool> gap(static_cast<std::size_t>(tensor.extent()), true);
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const auto begin = gap.begin() + tensor.row_offset(row);
    std::fill(begin, begin + tensor.columns(), false);
  }
  return gap;
}

}  // namespace

void check_gaps(const HostTensor& tensor, const HostTensor* before, Poison poison,
                std::vector<std::string>& lines) {
  if (tensor.extent() == tensor.elements()) return;
  const std::vector<bool> gap = gap_elements(tensor);
  const std::size_t size = size_of(tensor.spec().dtype);
  for (std::size_t i = 0; i < tensor.bytes().size(); ++i) {
    const std::byte held = before ? before->bytes()[i] : static_cast<std::byte>(poison);
    if (!gap[i / size] || tensor.bytes()[i] == held) continue;
    lines.push_back(fmt::format("{}: written between its rows, at element {} of the extent",
                                tensor.spec().name, i / size));
    return;
  }
}

void check_unchanged(const HostTensor& given, const Bytes& got, std::vector<std::string>& lines) {
  const std::size_t bytes = given.bytes().size();
  if (same_bytes(got.data(), given.bytes().data(), bytes)) return;
  const auto first = std::mismatch(given.bytes().begin(), given.bytes().end(), got.begin()).first;
  const auto element =
      static_cast<std::size_t>(first - given.bytes().begin()) / size_of(given.spec().dtype);
  lines.push_back(fmt::format("{}: input changed, first at element {} of the extent",
                              given.spec().name, element));
}

}  // namespace plumb::cases
