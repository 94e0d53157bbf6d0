// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/crossed_problem.h"

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "cases/drivers/composition.h"

namespace plumb::cases {

namespace {

bool same_layout(const TensorSpec& a, const TensorSpec& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides && a.role == b.role &&
         a.placement == b.placement && a.starts_as == b.starts_as;
}

void add_missing(const TensorSet& more, TensorSet& to) {
  for (const HostTensor& tensor : more.all()) {
    const TensorSpec& spec = tensor.spec();
    if (!to.contains(spec.name)) {
      to.add(spec);
    } else if (!same_layout(spec, to.at(spec.name).spec())) {
      throw BadRow(spec.name + " has another layout under another value of a choice");
    }
  }
}

class CrossedProblem final : public Problem {
 public:
  CrossedProblem(std::unique_ptr<Problem> filled, std::unique_ptr<Problem> launched,
                 std::unique_ptr<Problem> judged)
      : filled_(std::move(filled)), launched_(std::move(launched)), judged_(std::move(judged)) {
    make_tensors();
    const TensorSet judged_tensors = judged_->make_tensors();
    for (const HostTensor& tensor : judged_tensors.all()) {
      judged_names_.insert(tensor.spec().name);
    }
  }

  std::int64_t capacity() const override { return filled_->capacity(); }
  TensorSet make_tensors() const override {
    TensorSet tensors = filled_->make_tensors();
    add_missing(launched_->make_tensors(), tensors);
    add_missing(judged_->make_tensors(), tensors);
    return tensors;
  }
  void fill(const Step& step, TensorSet& tensors) const override { filled_->fill(step, tensors); }

  std::unique_ptr<OpState> make_state(const DeviceTensors& tensors) const override {
    return launched_->make_state(tensors);
  }
  plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors, OpState* state,
                      device::Stream stream) const override {
    return launched_->launch(entry, tensors, state, stream);
  }
  plumb_numerics declared(const device::OpEntry& entry, const DeviceTensors& tensors,
                          OpState* state, device::Stream stream) const override {
    return launched_->declared(entry, tensors, state, stream);
  }
  std::unique_ptr<Composition> composition() const override { return launched_->composition(); }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics,
                      const plumb_numerics& declared) const override {
    return judged_->expect(step, judged(tensors), numerics, declared);
  }
  Expectations expect_sample(const Step& step, const TensorSet& tensors,
                             const reference::Numerics& numerics,
                             const plumb_numerics& declared) const override {
    return judged_->expect_sample(step, judged(tensors), numerics, declared);
  }
  Expectations expect_whole(const Step& step, const TensorSet& tensors,
                            const reference::Numerics& numerics,
                            const plumb_numerics& declared) const override {
    return judged_->expect_whole(step, judged(tensors), numerics, declared);
  }
  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared,
                                  VerdictSeconds& seconds) const override {
    return judged_->judge(step, judged(tensors), numerics, declared, seconds);
  }
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return is_judged(spec) ? judged_->promised_rows(step, spec) : no_row(spec);
  }
  RowMask promised_rows_by_inputs(const Step& step, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    return is_judged(spec) ? judged_->promised_rows_by_inputs(step, judged(tensors), spec)
                           : no_row(spec);
  }
  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec& spec) const override {
    return is_judged(spec) ? judged_->promised_columns(judged(tensors), spec) : ColumnRanges{};
  }
  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics& declared) const override {
    if (!is_judged(spec)) return std::nullopt;
    return judged_->canonical(judged(tensors), spec, declared);
  }

  bool rows_have_places() const override { return judged_->rows_have_places(); }
  double cost() const override { return filled_->cost(); }
  double reference_cost() const override { return judged_->reference_cost(); }
  ReferenceWork reference_work() const override { return judged_->reference_work(); }
  double checked_factor() const override { return filled_->checked_factor(); }

 private:
  // True for tensors that the op has under the judged contract. Other outputs are not compared.
  bool is_judged(const TensorSpec& spec) const { return judged_names_.contains(spec.name); }
  TensorSet judged(const TensorSet& tensors) const {
    TensorSet own;
    for (const HostTensor& tensor : tensors.all()) {
      if (is_judged(tensor.spec())) own.add(tensor.alias());
    }
    return own;
  }
  static RowMask no_row(const TensorSpec& spec) {
    return RowMask(static_cast<std::size_t>(HostTensor(spec).rows()), false);
  }

  std::unique_ptr<Problem> filled_, launched_, judged_;
  std::set<std::string, std::less<>> judged_names_;
};

}  // namespace

std::unique_ptr<Problem> cross(std::unique_ptr<Problem> filled, std::unique_ptr<Problem> launched,
                               std::unique_ptr<Problem> judged) {
  return std::make_unique<CrossedProblem>(std::move(filled), std::move(launched),
                                          std::move(judged));
}

}  // namespace plumb::cases
