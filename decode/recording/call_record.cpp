// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/call_record.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "cases/drivers/op_chain.h"
#include "cases/tables/op_table.h"
#include "cases/tables/registry.h"
#include "decode/recording/placeholder_references.h"

namespace plumb::cases {

namespace {

// Bytes between consecutive rows of the first dimension.
std::int64_t row_bytes(const TensorSpec& spec) {
  const std::int64_t elements = spec.strides.empty()
                                    ? std::accumulate(spec.shape.begin() + 1, spec.shape.end(),
                                                      std::int64_t{1}, std::multiplies<>())
                                    : spec.strides.front();
  return elements * static_cast<std::int64_t>(size_of(spec.dtype));
}

}  // namespace

CallRecord record_of(const OpDefinition& op, const void* params,
                     const device::decode::Geometry& geometry) {
  const EngineLimits limits{.requests = geometry.max_requests,
                            .positions = geometry.max_context,
                            .query_tokens = geometry.query_tokens()};
  CallRecord record{ad_hoc_row(op, {}), {}};
  op.table->solve(params, limits, record.row);
  OpParams of_row(*op.table);
  op.table->set_scalars(record.row, nullptr, of_row.data());
  const auto here = op.table->layout({.params = of_row.data(), .row = &record.row});
  const auto there = op.table->layout({.params = params, .row = &record.row, .limits = &limits});
  for (std::size_t i = 0; i < there.size(); ++i) {
    const TensorSpec& spec = there[i].spec;
    const TableTensor& tensor = *there[i].declared;
    if (spec.name != tensor.name) continue;  // `<name>_before` has the binding of its output
    const std::int64_t bytes = row_bytes(spec);
    record.bindings.push_back({.tensor = spec.name,
                               .address = tensor.member.pointer(params),
                               .rows = spec.shape.front(),
                               .row_bytes = bytes == row_bytes(here[i].spec) ? 0 : bytes});
  }
  return record;
}

std::optional<CallRecord> record_of(const device::decode::Call& call,
                                    const device::decode::Geometry& geometry) {
  if (is_placeholder(call.op)) return std::nullopt;
  const std::vector<OpDefinition>& ops = all_ops();
  const auto op = std::find_if(ops.begin(), ops.end(),
                               [&](const OpDefinition& one) { return one.name == call.op; });
  if (op == ops.end()) throw std::invalid_argument("unknown op " + std::string(call.op));
  try {
    return record_of(*op, call.params, geometry);
  } catch (const std::invalid_argument& error) {
    throw device::decode::RefusedCall(call.op, call.place.name + ": " + error.what());
  }
}

}  // namespace plumb::cases
