// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/traced_step.h"

#include <xxhash.h>

#include <utility>

#include "cases/decode/fresh_checks.h"

namespace plumb::cases {

namespace {

// 0 where the op changed nothing: what it keeps is older than the call.
HostTensor what_changed(HostTensor tensor, const TensorSet& tensors) {
  const std::string before = tensor.spec().name + "_before";
  if (!tensors.contains(before)) return tensor;
  const Bytes& old = tensors.at(before).bytes();
  for (std::size_t i = 0; i < old.size() && i < tensor.bytes().size(); ++i) {
    if (tensor.bytes()[i] == old[i]) tensor.bytes()[i] = std::byte{0};
  }
  return tensor;
}

// As two results are compared, where the op leaves something open.
HostTensor comparable(const Taps::Tap& call, const HostTensor& tensor) {
  if (call.problem && call.entry != nullptr) {
    auto canonical = call.problem->canonical(call.tensors, tensor.spec(), call.entry->numerics);
    if (canonical) return std::move(*canonical);
  }
  return what_changed(tensor, call.tensors);
}

std::vector<std::uint64_t> digests(const HostTensor& tensor, const RowMask& promised,
                                   const ColumnRanges& columns) {
  const auto size = static_cast<std::int64_t>(size_of(tensor.spec().dtype));
  std::vector<std::uint64_t> rows;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const ColumnRange range = columns_of(columns, tensor, row);
    const auto* first = tensor.bytes().data() + (tensor.row_offset(row) + range.begin) * size;
    const auto bytes = static_cast<std::size_t>((range.end - range.begin) * size);
    rows.push_back(is_promised(promised, row) ? XXH3_64bits(first, bytes) : 0);
  }
  return rows;
}

TracedTensor trace(const Taps::Tap& call, const Taps::Copy& copy) {
  const HostTensor& tensor = call.tensors.at(copy.tensor);
  TracedTensor traced{copy.tensor, copy.before, copy.from, {}};
  if (copy.before) {
    traced.rows = digests(tensor, {}, {});
    return traced;
  }
  RowMask rows;
  ColumnRanges columns;
  if (call.problem) {
    rows = call.problem->promised_rows_by_inputs(call.step(), call.tensors, tensor.spec());
    columns = call.problem->promised_columns(call.tensors, tensor.spec());
  }
  traced.rows = digests(comparable(call, tensor), rows, columns);
  return traced;
}

}  // namespace

TracedStep trace(WatchedEngine& watched) {
  TracedStep step;
  for (const auto& part : watched.engine.parts()) {
    for (const auto& call : watched.taps->fetch(part)) {
      TracedCall traced{part.name, call->name, call->op, true, {}};
      if (call->entry != nullptr) traced.deterministic = call->entry->numerics.deterministic != 0;
      for (const Taps::Copy& copy : call->copies) traced.tensors.push_back(trace(*call, copy));
      step.calls.push_back(std::move(traced));
    }
  }
  step.results = live_results(watched);
  return step;
}

}  // namespace plumb::cases
