// SPDX-License-Identifier: Apache-2.0
#include "device/plugin/known_ops.h"

#include <stdexcept>
#include <vector>

namespace plumb::device {

namespace {

std::vector<KnownOp>& added_ops() {
  static std::vector<KnownOp> ops = [] {
    std::vector<KnownOp> none;
    none.reserve(kMostAddedOps);
    return none;
  }();
  return ops;
}

}  // namespace

void add_known_op(std::string_view name, std::size_t param_bytes) {
  if (added_ops().size() == kMostAddedOps) throw std::length_error("too many added ops");
  if (param_bytes > kMostParamBytes) throw std::length_error("too many parameters of an op");
  added_ops().push_back({name, param_bytes, false});
}

std::size_t position_of_op(std::string_view name) {
  const auto own = std::ranges::find(kOps, name, &KnownOp::name);
  if (own != std::end(kOps)) return static_cast<std::size_t>(own - std::begin(kOps));
  const auto added = std::ranges::find(added_ops(), name, &KnownOp::name);
  if (added == added_ops().end()) return kMostOps;
  return kOpCount + static_cast<std::size_t>(added - added_ops().begin());
}

const KnownOp& op_at(std::size_t position) {
  return position < kOpCount ? kOps[position] : added_ops().at(position - kOpCount);
}

}  // namespace plumb::device
