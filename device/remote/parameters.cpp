// SPDX-License-Identifier: Apache-2.0
#include "device/remote/parameters.h"

#include <cstddef>

namespace plumb::device::remote {

namespace {
constexpr std::size_t kPlanOffset = offsetof(plumb_sparse_mla_decode_params, plan);
}  // namespace

Bytes without_marks(const void* structure, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(structure);
  Bytes copy(begin, begin + bytes);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, copy.data() + at, sizeof word);
    if (!is_marked(word)) continue;
    word &= ~kMarkBits;
    std::memcpy(copy.data() + at, &word, sizeof word);
  }
  return copy;
}

const plumb_mla_plan* plan_of(std::string_view op, const Bytes& params) {
  const plumb_mla_plan* plan = nullptr;
  if (op != "sparse_mla_decode") return plan;
  std::memcpy(&plan, params.data() + kPlanOffset, sizeof plan);
  return plan;
}

void set_plan(Bytes& params, const plumb_mla_plan* plan) {
  std::memcpy(params.data() + kPlanOffset, &plan, sizeof plan);
}

}  // namespace plumb::device::remote
