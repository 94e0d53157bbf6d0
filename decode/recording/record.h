// SPDX-License-Identifier: Apache-2.0
//
// How the records of calls (call_record.h) are written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cases/drivers/op_chain.h"
#include "cases/tables/registry.h"
#include "decode/recording/call_record.h"

namespace plumb::cases {

using Integers = std::map<std::string, std::int64_t>;
using Words = std::map<std::string, std::string>;

inline constexpr std::int64_t kWord = sizeof(std::int32_t);

inline CallRecord record(std::string_view op, const Integers& integers,
                         std::vector<Binding> bindings, const Words& words = {}) {
  return {ad_hoc_row(find_op(op), integers, words), std::move(bindings)};
}

inline std::string word_of(plumb_format dialect) {
  return dialect == PLUMB_E4M3FNUZ ? "e4m3fnuz" : "e4m3fn";
}

}  // namespace plumb::cases
