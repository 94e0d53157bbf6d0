// SPDX-License-Identifier: Apache-2.0
//
// Records of the ops that only a step of V3.2 calls, and what all records are made with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/decode/call_record.h"

namespace plumb::cases {

CallRecord record(std::string_view op, const std::map<std::string, std::int64_t>& integers,
                  std::vector<Binding> bindings,
                  const std::map<std::string, std::string>& words = {});
std::string word_of(plumb_format dialect);

// Nothing for another op.
std::optional<CallRecord> v32_record_of(const device::decode::Call& call,
                                        const device::decode::Geometry& geometry);

}  // namespace plumb::cases
