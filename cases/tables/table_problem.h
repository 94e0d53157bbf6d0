// SPDX-License-Identifier: Apache-2.0
//
// A Problem whose tensors and launch come from its op's table. P is the op's C struct.
#pragma once

#include <memory>
#include <utility>

#include "cases/tables/op_table.h"
#include "cases/tables/problem.h"
#include "device/launch_state.h"

namespace plumb::cases {

// The structs that an op's struct points to, and what the implementation keeps of its launches.
struct TableState : OpState {
  explicit TableState(const OpParams& of) : params(of) {}
  OpParams params;
  device::LaunchState kept;
};

template <class P>
class TableProblem : public Problem {
 public:
  // Throws BadRow.
  TableProblem(const OpTable& table, const Row& row, const device::Properties& platform)
      : table_(table),
        row_(row),
        params_(table),
        p_(*static_cast<P*>(params_.data())),
        capacity_(made(platform)) {}

  std::int64_t capacity() const override { return capacity_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    for (auto& [spec, declared] : table_.layout({.params = params_.data(), .row = &row_})) {
      place(spec);
      tensors.add(std::move(spec));
    }
    return tensors;
  }

  std::unique_ptr<OpState> make_state(const DeviceTensors&) const override {
    return table_.pointed().empty() ? nullptr : std::make_unique<TableState>(params_);
  }

  plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors, OpState* state,
                      device::Stream stream) const override {
    const P p = bound(entry, tensors, state, stream);
    if constexpr (kKeepsState) return static_cast<TableState*>(state)->kept.launch(entry, &p);
    return entry.launch(&p);
  }
  plumb_numerics declared(const device::OpEntry& entry, const DeviceTensors& tensors,
                          OpState* state, device::Stream stream) const override {
    if (entry.numerics_of == nullptr) return entry.numerics;
    const P p = bound(entry, tensors, state, stream);
    return entry.declared(&p);
  }

 protected:
  // For tensors whose rows a case places far apart on the device.
  virtual void place(TensorSpec&) const {}

 private:
  static constexpr bool kKeepsState = requires(P p) { p.state; };

  P bound(const device::OpEntry& entry, const DeviceTensors& tensors, OpState* state,
          device::Stream stream) const {
    auto* const kept = static_cast<TableState*>(state);
    P p = kept == nullptr ? p_ : *static_cast<P*>(kept->params.data());
    table_.spread(row_, &p);
    table_.bind(tensors, stream, &p);
    if constexpr (kKeepsState) p.state = kept->kept.own(entry, &p);
    return p;
  }
  std::int64_t made(const device::Properties& platform) {
    table_.set_scalars(row_, &platform, params_.data());
    return table_.capacity.value({.params = params_.data(), .row = &row_});
  }

  const OpTable& table_;
  Row row_;
  OpParams params_;

 protected:
  P& p_;  // scalars as the op gets them; no pointers

 private:
  std::int64_t capacity_;
};

// OpDefinition::make_problem of a Problem that is made of a row and a platform.
template <class T>
std::unique_ptr<Problem> make_problem_of(const Row& row, const device::Properties& platform) {
  return std::make_unique<T>(row, platform);
}

}  // namespace plumb::cases
