// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/sparse_mla/planned_lengths.h"

#include <algorithm>
#include <iterator>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

std::int32_t planned_length(const PlannedLengths& planned, const Step& step, std::int64_t request) {
  if (request >= step.live) return 0;
  const std::int64_t turn = integer(planned.seed, 0, 0, step.live - 1);
  const std::int64_t place = (request + turn) % step.live, most = planned.most;
  const std::int64_t any =
      integer(planned.seed, static_cast<std::uint64_t>(request) + 1, 0, planned.most);
  std::int64_t length = most;
  if (planned.kind == "random") length = any;
  if (planned.kind == "one_long") length = place == 0 ? most : std::min<std::int64_t>(most, 1);
  if (planned.kind == "zeros") {
    const std::int64_t third = step.live / 3;
    const bool middle = request > third && request < 2 * third;
    length = request == 0 || request == step.live - 1 || middle ? 0 : any;
  }
  if (planned.kind == "borders") {
    const std::int64_t n = planned.block;
    const std::int64_t edges[] = {n - 1, n, n + 1, 1, 2 * n + 1, 2 * n, 0};
    length = std::min(most, edges[place % std::ssize(edges)]);
  }
  return static_cast<std::int32_t>(length);
}

}  // namespace

void fill_planned_lengths(const PlannedLengths& planned, const Step& step, HostTensor& lengths) {
  auto* own = lengths.data<std::int32_t>();
  for (std::int64_t request = 0; request < lengths.rows(); ++request) {
    own[request] = planned_length(planned, step, request);
  }
}

void fill_planned_indptr(const PlannedLengths& planned, const Step& step, HostTensor& indptr) {
  auto* own = indptr.data<std::int32_t>();
  own[0] = 0;
  for (std::int64_t request = 0; request + 1 < indptr.rows(); ++request) {
    own[request + 1] = own[request] + planned_length(planned, step, request);
  }
}

}  // namespace plumb::cases
