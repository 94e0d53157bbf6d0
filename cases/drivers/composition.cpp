// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/composition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>

#include "cases/drivers/session.h"
#include "cases/recorded/recorded_problem.h"

namespace plumb::cases {

namespace {

constexpr std::string_view kPlain = "plain_";

bool same_arithmetic(const plumb_numerics& a, const plumb_numerics& b) {
  return a.product == b.product && a.accumulator == b.accumulator && a.chains == b.chains &&
         a.function_ulp == b.function_ulp && a.sum_unit == b.sum_unit && a.sum_step == b.sum_step &&
         a.score == b.score && a.deterministic && b.deterministic;
}

// True if two contracts have different values for one choice: "rounding=once" and "rounding=twice".
bool differ(const std::string& a, const std::string& b) {
  std::istringstream of_a(a);
  for (std::string word; of_a >> word;) {
    const std::string choice = word.substr(0, word.find('=') + 1);
    const std::string others = " " + b + " ";
    if (others.find(" " + choice) == std::string::npos) continue;
    if (others.find(" " + word + " ") == std::string::npos) return true;
  }
  return false;
}

void copy_rows(const HostTensor& from, HostTensor& to) {
  const std::size_t bytes = static_cast<std::size_t>(from.columns()) * size_of(from.spec().dtype);
  const auto offset = [](const HostTensor& tensor, std::int64_t row) {
    return static_cast<std::ptrdiff_t>(tensor.row_offset(row)) *
           static_cast<std::ptrdiff_t>(size_of(tensor.spec().dtype));
  };
  for (std::int64_t row = 0; row < from.rows(); ++row) {
    std::copy_n(from.bytes().begin() + offset(from, row), bytes,
                to.bytes().begin() + offset(to, row));
  }
}

// Replaces every NaN by one fixed NaN: the sign and payload of a NaN depend on the operand order
// and carry no meaning.
HostTensor with_one_nan(HostTensor tensor) {
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t i = 0; i < tensor.columns(); ++i) {
      if (!std::isnan(tensor.value(row, i))) continue;
      if (tensor.spec().dtype == Dtype::bf16) tensor.row<std::uint16_t>(row)[i] = 0x7fc0;
      if (tensor.spec().dtype == Dtype::f32) {
        tensor.row<float>(row)[i] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }
  return tensor;
}

class ComposedProblem final : public Problem {
 public:
  ComposedProblem(std::unique_ptr<Problem> fused, std::unique_ptr<Composition> plain,
                  std::vector<device::OpEntry> entries, const std::string& contract, bool foreign)
      : fused_(std::move(fused)), plain_(std::move(plain)), entries_(std::move(entries)) {
    may_be_alike_ = !foreign && std::ranges::none_of(entries_, [&](const device::OpEntry& entry) {
      return differ(entry.contract, contract);
    });
  }

  std::int64_t capacity() const override { return fused_->capacity(); }

  TensorSet make_tensors() const override {
    TensorSet tensors = fused_->make_tensors();
    const TensorSet beside = plain_->make_tensors();
    for (const HostTensor& tensor : beside.all()) tensors.add(tensor.spec());
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fused_->fill(step, tensors);
    plain_->fill(step, tensors);
  }

  std::unique_ptr<OpState> make_state(const DeviceTensors& tensors) const override {
    return fused_->make_state(tensors);
  }

  plumb_numerics declared(const device::OpEntry& entry, const DeviceTensors& tensors,
                          OpState* state, device::Stream stream) const override {
    return fused_->declared(entry, tensors, state, stream);
  }
  plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors, OpState* state,
                      device::Stream stream) const override {
    const plumb_status status = fused_->launch(entry, tensors, state, stream);
    return status == PLUMB_OK ? plain_->launch(entries_, tensors, stream) : status;
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics,
                      const plumb_numerics& declared) const override {
    return fused_->expect(step, tensors, numerics, declared);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared,
                                  VerdictSeconds& seconds) const override {
    std::vector<TensorReport> reports = fused_->judge(step, tensors, numerics, declared, seconds);
    const bool alike = may_be_alike_ && std::ranges::all_of(entries_, [&](const auto& entry) {
                         return same_arithmetic(entry.numerics, declared);
                       });
    append(reports,
           alike ? compare_with_plain(step, tensors) : judge_plain(step, tensors, seconds));
    append(reports, cases::compare(plain_->expect(step, tensors, entries_)));
    return reports;
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    if (!spec.name.starts_with(kPlain)) return fused_->promised_rows(step, spec);
    TensorSpec of_fused = spec;
    of_fused.name = spec.name.substr(kPlain.size());
    return fused_->promised_rows(step, of_fused);
  }

  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics& declared) const override {
    return fused_->canonical(tensors, spec, declared);
  }

  RowMask promised_rows_by_inputs(const Step& step, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    if (spec.name.starts_with(kPlain)) return promised_rows(step, spec);
    return fused_->promised_rows_by_inputs(step, tensors, spec);
  }

  double cost() const override { return 2 * fused_->cost(); }
  double reference_cost() const override { return fused_->reference_cost(); }
  double checked_factor() const override { return fused_->checked_factor(); }

 private:
  static void append(std::vector<TensorReport>& reports, std::vector<TensorReport> more) {
    std::move(more.begin(), more.end(), std::back_inserter(reports));
  }

  // Calls visit(fused result, plain result) for every output that both compute with the same
  // roundings.
  void for_each_pair(const TensorSet& tensors, const auto& visit) const {
    for (const HostTensor& plain : tensors.all()) {
      const std::string& name = plain.spec().name;
      if (plain.spec().role != Role::output || !name.starts_with(kPlain)) continue;
      const std::string of_fused = name.substr(kPlain.size());
      if (plain_->rounds_alike(of_fused)) visit(tensors.at(of_fused), plain);
    }
  }

  std::vector<TensorReport> compare_with_plain(const Step& step, const TensorSet& tensors) const {
    const std::string what = fmt::format("differs from {}", fmt::join(plain_->ops(), ", "));
    std::vector<TensorReport> reports;
    for_each_pair(tensors, [&](const HostTensor& fused, const HostTensor& plain) {
      reports.push_back(judge_bits(with_one_nan(fused), with_one_nan(plain),
                                   fused_->promised_rows(step, fused.spec()), what));
      reports.back().tensor += " (against plain)";
    });
    return reports;
  }

  // Judges the plain results in place of the fused ones, within the error bounds of the plain
  // arithmetic.
  std::vector<TensorReport> judge_plain(const Step& step, TensorSet tensors,
                                        VerdictSeconds& seconds) const {
    for_each_pair(TensorSet(tensors), [&](const HostTensor& fused, const HostTensor& plain) {
      copy_rows(plain, tensors.at(fused.spec().name));
    });
    const plumb_numerics& declared = entries_.back().numerics;
    std::vector<TensorReport> reports =
        fused_->judge(step, tensors, to_reference(declared), declared, seconds);
    for (TensorReport& report : reports) {
      report.tensor += " (plain)";
      for (std::string& failure : report.failures) failure = "plain sequence: " + failure;
    }
    return reports;
  }

  std::unique_ptr<Problem> fused_;
  std::unique_ptr<Composition> plain_;
  std::vector<device::OpEntry> entries_;
  bool may_be_alike_ = true;
};

}  // namespace

std::unique_ptr<Composition> Problem::composition() const { return nullptr; }

std::unique_ptr<Composition> RecordedProblem::composition() const { return own_->composition(); }

std::unique_ptr<Problem> compose(std::unique_ptr<Problem> fused, std::string_view op,
                                 const device::Implementation& implementation, bool foreign) {
  std::unique_ptr<Composition> plain = fused->composition();
  if (!plain) throw std::logic_error("a case of the scenario composition needs a plain sequence");
  std::vector<device::OpEntry> entries;
  for (const std::string_view called : plain->ops()) {
    const device::OpEntry* entry = device::find_entry(implementation, called);
    if (!entry) {
      throw Unsupported(
          fmt::format("{} has no {}, which the plain sequence calls", implementation.name, called));
    }
    entries.push_back(*entry);
  }
  const device::OpEntry* own = device::find_entry(implementation, op);
  return std::make_unique<ComposedProblem>(std::move(fused), std::move(plain), std::move(entries),
                                           own == nullptr ? "" : own->contract, foreign);
}

}  // namespace plumb::cases
