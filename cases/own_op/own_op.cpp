// SPDX-License-Identifier: Apache-2.0
#include "cases/own_op/own_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cases/own_op/own_inputs.h"
#include "cases/own_op/own_op_table.h"
#include "cases/own_op/own_rows.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

// A declared op and the table made from it, which holds views of the op's strings. Both live as
// long as the process.
struct KeptOwnOp {
  OwnOp op;
  std::unique_ptr<OpTable> table;
};

std::int64_t count_of(const std::vector<std::int64_t>& sizes, std::size_t first = 0) {
  std::int64_t all = 1;
  for (std::size_t i = first; i < sizes.size(); ++i) all *= sizes[i];
  return all;
}

// Extends the estimate of the live rows to the padded tensor: zeros without errors in the padding.
reference::Estimate with_padding(reference::Estimate estimate, const HostTensor& tensor) {
  const bool one_row = tensor.spec().shape.size() < 2;
  const auto rows = static_cast<std::size_t>(tensor.rows());
  const auto all = static_cast<std::size_t>(tensor.elements());
  estimate.rows = tensor.rows();
  estimate.columns = tensor.columns();
  for (std::vector<double>* of : {&estimate.value, &estimate.sigma, &estimate.worst}) {
    of->resize(all);
  }
  if (!estimate.shift.empty()) estimate.shift.resize(all);
  if (one_row) return estimate;
  for (std::vector<double>* of : {&estimate.row_mean_sigma, &estimate.row_systematic,
                                  &estimate.row_concentration, &estimate.row_factor}) {
    if (!of->empty()) of->resize(rows);
  }
  return estimate;
}

class OwnProblem final : public ProblemOfTable {
 public:
  OwnProblem(const KeptOwnOp& kept, const Row& row, const device::Properties& platform)
      : ProblemOfTable(*kept.table, row, platform), op_(kept.op) {
    for (const OwnSize& size : op_.sizes) sizes_[size.name] = row.integer(size.name);
    for (const OwnReal& real : op_.reals) reals_[real.name] = row.real(real.name, real.value);
    for (const OwnTensor& tensor : op_.tensors) {
      below_.push_back(own_size(op_, tensor.below, tensor.name).value({.row = &row}));
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    for (std::size_t i = 0; i < op_.tensors.size(); ++i) {
      const OwnTensor& declared = op_.tensors[i];
      if (declared.output || !tensors.contains(declared.name)) continue;
      fill_own_input(declared, has_padding(op_, declared), step, below_[i], mix(step.seed, i + 1),
                     tensors.at(declared.name));
    }
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    Expectations expectations;
    const std::vector<const OwnTensor*> outputs = outputs_of();
    const bool all_padded = std::ranges::all_of(
        outputs, [&](const OwnTensor* output) { return has_padding(op_, *output); });
    if (all_padded && step.live == 0) return expectations;
    std::vector<OwnResult> results = op_.reference(call_of(step, tensors, numerics));
    if (results.size() != outputs.size()) {
      throw BadRow(fmt::format("{}: the reference returns {} results for {} outputs", op_.name,
                               results.size(), outputs.size()));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!tensors.contains(outputs[i]->name)) continue;
      const HostTensor& stored = tensors.at(outputs[i]->name);
      expectations.push_back(expectation_of(step, *outputs[i], stored, std::move(results[i])));
    }
    return expectations;
  }

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    const auto declared = std::ranges::find(op_.tensors, spec.name, &OwnTensor::name);
    if (declared == op_.tensors.end() || !has_padding(op_, *declared) || spec.shape.size() < 2) {
      return {};
    }
    const std::int64_t inside =
        count_of(spec.shape, 1) / std::max<std::int64_t>(spec.shape.back(), 1);
    RowMask mask(static_cast<std::size_t>(spec.shape.front() * inside), false);
    std::fill_n(mask.begin(), step.live * inside, true);
    return mask;
  }

  double cost() const override { return kCostOfElement * elements(); }
  double reference_cost() const override { return kCostOfElement * elements(); }

 private:
  // Nanoseconds per element. What the op computes is unknown; the value is roughly that of a
  // product of two small matrices.
  static constexpr double kCostOfElement = 200;

  double elements() const {
    double all = 0;
    const TensorSet tensors = make_tensors();
    for (const HostTensor& tensor : tensors.all()) {
      all += static_cast<double>(tensor.elements());
    }
    return all;
  }

  std::vector<const OwnTensor*> outputs_of() const {
    std::vector<const OwnTensor*> outputs;
    for (const OwnTensor& tensor : op_.tensors) {
      if (tensor.output) outputs.push_back(&tensor);
    }
    return outputs;
  }

  OwnCall call_of(const Step& step, const TensorSet& tensors,
                  const reference::Numerics& numerics) const {
    OwnCall call{.inputs = {},
                 .sizes = sizes_,
                 .reals = reals_,
                 .numerics = numerics,
                 .structured = step.fill == Fill::exact};
    if (!op_.live.empty()) call.sizes[op_.live] = step.live;
    for (const OwnTensor& declared : op_.tensors) {
      if (declared.output || !tensors.contains(declared.name)) continue;
      call.inputs.emplace(declared.name, own_input(tensors.at(declared.name),
                                                   has_padding(op_, declared), step.live));
    }
    return call;
  }

  Expectation expectation_of(const Step& step, const OwnTensor& declared, const HostTensor& stored,
                             OwnResult result) const {
    const bool padded = has_padding(op_, declared);
    std::vector<std::int64_t> shape = stored.spec().shape;
    if (padded) shape.front() = step.live;
    const bool one_row = shape.size() < 2;
    RowMask promised = promised_rows(step, stored.spec());
    if (auto* estimate = std::get_if<reference::Estimate>(&result)) {
      check_count(declared, shape, estimate->rows * estimate->columns);
      const ColumnRanges columns =
          padded && one_row ? ColumnRanges{{0, step.live}} : ColumnRanges{};
      return expect_floats(stored, with_padding(std::move(*estimate), stored), std::move(promised),
                           groups_of(stored.rows(), 1, "row"), columns);
    }
    auto values = std::get<std::vector<std::int64_t>>(std::move(result));
    check_count(declared, shape, std::ssize(values));
    const std::size_t live = values.size();
    values.resize(static_cast<std::size_t>(stored.elements()));
    // Elements behind the live ones in a one-dimensional tensor are padding: expect the stored
    // values.
    for (std::size_t i = live; one_row && i < values.size(); ++i) {
      values[i] = static_cast<std::int64_t>(stored.value(0, static_cast<std::int64_t>(i)));
    }
    return expect_exact(stored, std::move(values), std::move(promised));
  }

  void check_count(const OwnTensor& declared, const std::vector<std::int64_t>& shape,
                   std::int64_t count) const {
    if (count == count_of(shape)) return;
    throw BadRow(fmt::format("{}: the reference returns {} elements for {}, which has {}", op_.name,
                             count, declared.name, count_of(shape)));
  }

  const OwnOp& op_;
  std::map<std::string, std::int64_t> sizes_;
  std::map<std::string, double> reals_;
  std::vector<std::int64_t> below_;  // exclusive upper limit of integers, per tensor
};

// True if the size occurs in a tensor's shape or as an upper limit of integers. Other sizes are
// plain numbers that are passed to reference and kernel.
bool is_of_an_array(const OwnOp& op, const std::string& size) {
  const auto has_word = [&](std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return c == '+' || c == '-' || c == '*' || c == '/'; }, ' ');
    return (" " + text + " ").find(" " + size + " ") != std::string::npos;
  };
  return std::ranges::any_of(op.tensors, [&](const OwnTensor& tensor) {
    return std::ranges::any_of(tensor.shape, has_word) || has_word(tensor.below);
  });
}

std::vector<Parameter> parameters_of(const OwnOp& op) {
  constexpr std::int64_t kMostSize = std::int64_t{1} << 31, kMostGap = std::int64_t{1} << 20;
  std::vector<Parameter> parameters;
  for (const OwnSize& size : op.sizes) {
    const bool counts = is_of_an_array(op, size.name);
    parameters.push_back({size.name, size.values.front(), counts && size.name != op.live ? 1 : 0,
                          kMostSize, counts ? "size" : "number"});
  }
  for (const OwnTensor& tensor : op.tensors) {
    if (tensor.optional) parameters.push_back({tensor.name, 1, 0, 1, "0: there is none"});
  }
  parameters.push_back({kOwnRowGap, 0, 0, kMostGap, "elements between rows of inputs, guarded"});
  parameters.push_back({kOwnOutGap, 0, 0, kMostGap, "elements between rows of outputs, guarded"});
  return parameters;
}

// True if the text can name a size, an argument or an op. Names are used in Python, in TOML and in
// case names, so only letters, digits and _ are allowed, and no digit at the beginning.
bool is_name(const std::string& text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && std::ranges::all_of(text, is_word);
}

// Refuses a name that occurs twice: two arguments of one name would become one row parameter.
void check_names(const OwnOp& op) {
  std::vector<std::string> names{kOwnRowGap, kOwnOutGap, "stream", "platform"};
  const auto add = [&](const std::string& name) {
    if (!is_name(name)) throw BadRow(fmt::format("{}: \"{}\" is not a valid name", op.name, name));
    if (std::ranges::find(names, name) != names.end()) {
      throw BadRow(fmt::format("{}: there are two arguments {}, or plumb has one of this name",
                               op.name, name));
    }
    names.push_back(name);
  };
  if (!is_name(op.name)) throw BadRow(fmt::format("\"{}\" is not a valid name of an op", op.name));
  for (const OwnSize& size : op.sizes) add(size.name);
  for (const OwnReal& real : op.reals) add(real.name);
  for (const OwnTensor& tensor : op.tensors) add(tensor.name);
}

void check_own_op(const OwnOp& op) {
  constexpr std::size_t kMostTensors = 40;
  check_names(op);
  if (op.tensors.size() > kMostTensors) {
    throw BadRow(
        fmt::format("{}: {} arrays, more than {}", op.name, op.tensors.size(), kMostTensors));
  }
  const auto is_output = [](const OwnTensor& tensor) { return tensor.output; };
  if (std::ranges::none_of(op.tensors, is_output)) throw BadRow(op.name + ": has no output");
  for (const OwnSize& size : op.sizes) {
    const std::int64_t least = is_of_an_array(op, size.name) ? 1 : 0;
    const bool is_least =
        std::ranges::all_of(size.values, [&](std::int64_t value) { return value >= least; });
    if (size.values.empty() || !is_least) {
      throw BadRow(fmt::format("{}: {} has no value, or one below {}", op.name, size.name, least));
    }
  }
  if (!op.live.empty() && std::ranges::find(op.sizes, op.live, &OwnSize::name) == op.sizes.end()) {
    throw BadRow(fmt::format("{}: live = \"{}\" is not a size of the op", op.name, op.live));
  }
  for (const OwnTensor& tensor : op.tensors) {
    for (const std::string& size : tensor.shape) own_size(op, size, tensor.name);
    own_size(op, tensor.below, tensor.name);
    const std::vector<double>& between = tensor.between;
    if (!between.empty() && (between.size() != 2 || !(between[0] < between[1]))) {
      throw BadRow(fmt::format("{}: {} lies between two numbers, the smaller one first", op.name,
                               tensor.name));
    }
    if (tensor.shape.empty())
      throw BadRow(fmt::format("{}: {} has no shape", op.name, tensor.name));
  }
}

}  // namespace

OwnDefinition define_own_op(OwnOp op) {
  check_own_op(op);
  // Never freed: op definitions point to it.
  auto* const kept = new KeptOwnOp{std::move(op), nullptr};
  kept->table = own_table(kept->op);
  kept->table->check();
  OpDefinition made{{kept->op.name, kept->op.summary, parameters_of(kept->op)},
                    [kept](const Row& row, const device::Properties& platform) {
                      return std::make_unique<OwnProblem>(*kept, row, platform);
                    }};
  made.table = kept->table.get();
  for (const OwnReal& real : kept->op.reals) made.reals.push_back(real.name);
  return {std::move(made), own_rows(kept->op)};
}

}  // namespace plumb::cases
