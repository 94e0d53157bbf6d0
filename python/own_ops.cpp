// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cases/own_op/own_op_messages.h"
#include "cases/tables/registry.h"
#include "process/codec_fields.h"
#include "python/numpy_arrays.h"
#include "python/tracked.h"
#include "reference/tracked/tracked.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace plumb::python {

namespace {

using cases::OwnCall;
using cases::OwnInput;
using cases::OwnOp;
using cases::OwnResult;
using cases::OwnTensor;
using reference::Tracked;

cases::Dtype dtype_named(const std::string& name) {
  using cases::Dtype;
  for (const Dtype one : {Dtype::u8, Dtype::i32, Dtype::i64, Dtype::bf16, Dtype::f32}) {
    if (name_of(one) == name) return one;
  }
  throw cases::BadRow(fmt::format("an array of \"{}\": it is u8, i32, i64, bf16 or f32", name));
}

OwnTensor tensor_of(nb::dict given) {
  return {.name = nb::cast<std::string>(given["name"]),
          .dtype = dtype_named(nb::cast<std::string>(given["dtype"])),
          .output = nb::cast<bool>(given["output"]),
          .optional = nb::cast<bool>(given["optional"]),
          .shape = nb::cast<std::vector<std::string>>(given["shape"]),
          .least = nb::cast<std::int64_t>(given["least"]),
          .below = nb::cast<std::string>(given["below"]),
          .scale = nb::cast<double>(given["scale"]),
          .between = nb::cast<std::vector<double>>(given["between"]),
          .says = nb::cast<std::string>(given["says"])};
}

nb::object argument_of(const OwnInput& input, const reference::Numerics& numerics) {
  if (const auto* numbers = std::get_if<std::vector<double>>(&input.values)) {
    return nb::cast(Tracked(*numbers, input.shape, numerics));
  }
  return array_of(std::get<std::vector<std::int64_t>>(input.values),
                  {input.shape.begin(), input.shape.end()});
}

OwnResult result_of(nb::handle made, const OwnTensor& output, bool structured) {
  if (nb::isinstance<Tracked>(made)) {
    const auto format =
        output.dtype == cases::Dtype::bf16 ? reference::Format::bf16 : reference::Format::f32;
    return estimate_of(nb::cast<Tracked>(made), format, structured);
  }
  using Integers = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;
  const auto array = nb::cast<Integers>(made);
  return std::vector<std::int64_t>(array.data(), array.data() + array.size());
}

// Calls the reference. Throws BadRow for any error of the function.
std::vector<OwnResult> call_reference(nb::object& function, const std::vector<OwnTensor>& tensors,
                                      const std::string& op, const OwnCall& call) {
  const nb::gil_scoped_acquire lock;
  const NumericsOfCall numerics(call.numerics);
  try {
    nb::dict inputs, numbers;
    for (const OwnTensor& tensor : tensors) {
      if (tensor.output) continue;
      const auto found = call.inputs.find(tensor.name);
      inputs[tensor.name.c_str()] =
          found == call.inputs.end() ? nb::none() : argument_of(found->second, call.numerics);
    }
    for (const auto& [name, value] : call.sizes) numbers[name.c_str()] = value;
    for (const auto& [name, value] : call.reals) numbers[name.c_str()] = value;
    const nb::list made = nb::cast<nb::list>(function(inputs, numbers));
    std::vector<OwnResult> results;
    std::size_t i = 0;
    for (const OwnTensor& tensor : tensors) {
      if (tensor.output) results.push_back(result_of(made[i++], tensor, call.structured));
    }
    return results;
  } catch (const nb::python_error& error) {
    throw cases::BadRow(fmt::format("{}: the reference raised {}: {}", op,
                                    nb::cast<std::string>(error.type().attr("__name__")),
                                    nb::cast<std::string>(nb::str(error.value()))));
  } catch (const nb::cast_error&) {
    throw cases::BadRow(op + ": the reference returns neither arrays nor integers");
  } catch (const std::invalid_argument& error) {
    throw cases::BadRow(fmt::format("{}: the reference: {}", op, error.what()));
  }
}

// Ops of this process. Never destroyed, because Python may have ended by then.
std::vector<OwnOp>& own_ops() {
  static auto* const all = new std::vector<OwnOp>;
  return *all;
}

void add_op(const std::string& name, const std::string& summary, nb::list tensors,
            const std::map<std::string, std::vector<std::int64_t>>& sizes,
            const std::map<std::string, double>& reals, const std::string& live, nb::list rows,
            nb::object function) {
  OwnOp op{.name = name, .summary = summary, .live = live};
  for (nb::handle tensor : tensors) op.tensors.push_back(tensor_of(nb::cast<nb::dict>(tensor)));
  for (const auto& [size, values] : sizes) op.sizes.push_back({size, values});
  for (const auto& [real, value] : reals) op.reals.push_back({real, static_cast<float>(value)});
  for (nb::handle row : rows) {
    const auto given = nb::cast<nb::dict>(row);
    op.rows.push_back({.name = nb::cast<std::string>(given["name"]),
                       .why = nb::cast<std::string>(given["why"]),
                       .tier = nb::cast<std::string>(given["tier"]),
                       .sizes = nb::cast<std::map<std::string, std::int64_t>>(given["sizes"])});
  }
  // never freed, because the op outlives the interpreter
  auto* const kept = new nb::object(std::move(function));
  op.reference = [kept, all = op.tensors, name](const OwnCall& call) {
    return call_reference(*kept, all, name, call);
  };
  own_ops().push_back(op);
  cases::OwnDefinition made = cases::define_own_op(std::move(op));
  cases::add_op(std::move(made.op), std::move(made.rows));
}

process::Bytes answer_to(const process::WorkerRequest& request, const std::string& refused) {
  if (request.name == cases::kOwnDeclarations) {
    return process::encode(cases::OwnOpsOfFile{own_ops(), refused});
  }
  const auto asked = process::decode<cases::OwnOpRequest>(request.body);
  cases::OwnOpAnswer answer;
  const auto op = std::ranges::find(own_ops(), asked.op, &OwnOp::name);
  if (op == own_ops().end()) throw cases::BadRow("there is no op " + asked.op);
  try {
    answer.results = op->reference(asked.call);
  } catch (const cases::BadRow& error) {
    answer.refused = error.what();
  }
  return process::encode(answer);
}

int serve_ops(const std::string& refused) {
  const nb::gil_scoped_release unlocked;
  return process::serve(
      [&](const process::WorkerRequest& request) { return answer_to(request, refused); });
}

bool is_ops_worker() {
  try {
    return process::worker_role() == cases::kOwnOpsRole;
  } catch (const process::NotAWorker&) {
    return false;
  }
}

}  // namespace

void add_own_ops(nb::module_& module) {
  module.def("has_own_ops", [] { return !own_ops().empty(); });
  module.def("is_ops_worker", &is_ops_worker);
  module.def("serve_ops", &serve_ops, "refused"_a);
  module.def("add_op", &add_op, "name"_a, "summary"_a, "tensors"_a, "sizes"_a, "reals"_a, "live"_a,
             "rows"_a, "function"_a, "An op of this process, with its rows.");
}

}  // namespace plumb::python
