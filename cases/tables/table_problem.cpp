// SPDX-License-Identifier: Apache-2.0
#include "cases/tables/table_problem.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "device/launch_state.h"

namespace plumb::cases {

namespace {

// Copies of the structs that the op's struct points to, and the implementation's own state.
struct TableState : OpState {
  explicit TableState(const OpParams& of) : params(of) {}
  OpParams params;
  device::LaunchState kept;
};

}  // namespace

ProblemOfTable::ProblemOfTable(const OpTable& table, const Row& row,
                               const device::Properties& platform)
    : table_(table), row_(row), params_(table) {
  try {
    table_.set_scalars(row_, &platform, params_.data());
  } catch (const std::invalid_argument& error) {
    throw BadRow(fmt::format("{}: {}", row.where, error.what()));
  }
  capacity_ = table_.capacity.value({.params = params_.data(), .row = &row_});
}
ProblemOfTable::~ProblemOfTable() = default;

TensorSet ProblemOfTable::make_tensors() const {
  TensorSet tensors;
  for (auto& [spec, declared] : table_.layout({.params = params_.data(), .row = &row_})) {
    place(spec);
    tensors.add(std::move(spec));
  }
  return tensors;
}

std::unique_ptr<OpState> ProblemOfTable::make_state(const DeviceTensors&) const {
  return table_.pointed().empty() ? nullptr : std::make_unique<TableState>(params_);
}

std::vector<std::byte> ProblemOfTable::bound(const device::OpEntry& entry,
                                             const DeviceTensors& tensors, OpState* state,
                                             device::Stream stream) const {
  auto* const kept = static_cast<TableState*>(state);
  std::vector<std::byte> p(table_.size());
  std::memcpy(p.data(), kept == nullptr ? params_.data() : kept->params.data(), p.size());
  table_.spread(row_, p.data());
  table_.bind(tensors, stream, p.data());
  if (table_.state()) table_.state()->set_pointer(p.data(), kept->kept.own(entry, p.data()));
  return p;
}

plumb_status ProblemOfTable::launch(const device::OpEntry& entry, const DeviceTensors& tensors,
                                    OpState* state, device::Stream stream) const {
  const std::vector<std::byte> p = bound(entry, tensors, state, stream);
  if (table_.state()) return static_cast<TableState*>(state)->kept.launch(entry, p.data());
  return entry.launch(p.data());
}

plumb_numerics ProblemOfTable::declared(const device::OpEntry& entry, const DeviceTensors& tensors,
                                        OpState* state, device::Stream stream) const {
  if (entry.numerics_of == nullptr) return entry.numerics;
  return entry.declared(bound(entry, tensors, state, stream).data());
}

}  // namespace plumb::cases
