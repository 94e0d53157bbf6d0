// SPDX-License-Identifier: Apache-2.0
//
// C++ side of plumb_kernels/__init__.py: takes and returns dictionaries of arrays.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/judge/right_outputs.h"
#include "cases/studies/outside_call.h"
#include "cases/tables/op_arguments.h"
#include "cases/tables/registry.h"
#include "python/kernels.h"
#include "python/numpy_arrays.h"
#include "python/tracked.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace plumb::python {

namespace {

using cases::Dtype;
using cases::GivenTensor;
using cases::HostTensor;
using Array = nb::ndarray<nb::device::cpu, nb::ro>;

// numpy's name of a dtype, such as "float64".
std::string numpy_name(const nb::dlpack::dtype& type) {
  using enum nb::dlpack::dtype_code;
  const auto of = [&](nb::dlpack::dtype_code code) {
    return type.code == static_cast<std::uint8_t>(code);
  };
  const std::string_view kind = of(Float)     ? "float"
                                : of(Int)     ? "int"
                                : of(UInt)    ? "uint"
                                : of(Bfloat)  ? "bfloat"
                                : of(Complex) ? "complex"
                                : of(Bool)    ? "bool"
                                              : "a type of bits: ";
  return fmt::format("{}{}", kind, int{type.bits});
}

// bf16 comes as uint16 and fp8 as uint8 (bit patterns). DLPack's own types of these widths are
// accepted too.
Dtype dtype_of(const std::string& name, const nb::dlpack::dtype& type) {
  const bool is_float = type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float);
  const bool is_signed = type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int);
  if (type.lanes == 1) {
    if (is_float && type.bits == 32) return Dtype::f32;
    if (!is_float && type.bits == 8) return Dtype::u8;
    if (!is_float && type.bits == 16) return Dtype::bf16;
    if (!is_float && type.bits == 32) return Dtype::i32;
    if (is_signed && type.bits == 64) return Dtype::i64;
  }
  throw cases::BadRow(fmt::format(
      "{}: no op has {}; ops have float32, int32, int64, uint8, and bf16 as its bits (uint16)",
      name, numpy_name(type)));
}

GivenTensor given(const std::string& name, const Array& array) {
  GivenTensor tensor{.dtype = dtype_of(name, array.dtype()),
                     .data = static_cast<const std::byte*>(array.data())};
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    tensor.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
    tensor.strides.push_back(array.stride(i) * static_cast<std::int64_t>(array.itemsize()));
  }
  return tensor;
}

cases::GivenCall call_of(const std::map<std::string, Array>& arrays,
                         const std::map<std::string, std::int64_t>& integers,
                         const std::map<std::string, std::string>& words,
                         const std::map<std::string, double>& reals) {
  cases::GivenCall call;
  for (const auto& [name, array] : arrays) call.tensors[name] = given(name, array);
  call.integers.insert(integers.begin(), integers.end());
  call.words.insert(words.begin(), words.end());
  for (const auto& [name, value] : reals) call.reals[name] = static_cast<float>(value);
  return call;
}

std::vector<std::size_t> shape_of(const HostTensor& tensor) {
  return {tensor.spec().shape.begin(), tensor.spec().shape.end()};
}

template <class T>
nb::object stored_as(const HostTensor& tensor) {
  std::vector<T> values;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const T* const first = tensor.row<T>(row);
    values.insert(values.end(), first, first + tensor.columns());
  }
  return array_of(std::move(values), shape_of(tensor));
}

nb::object stored(const HostTensor& tensor) {
  switch (tensor.spec().dtype) {
    case Dtype::u8: return stored_as<std::uint8_t>(tensor);
    case Dtype::i32: return stored_as<std::int32_t>(tensor);
    case Dtype::i64: return stored_as<std::int64_t>(tensor);
    case Dtype::bf16: return stored_as<std::uint16_t>(tensor);
    case Dtype::f32: return stored_as<float>(tensor);
  }
  return nb::none();
}

// An array in the tensor's shape with of(i) for each element.
nb::object each_element(const cases::Expectation& one,
                        const std::function<double(std::int64_t)>& of) {
  const reference::Estimate& estimate = *one.truth->estimate();
  std::vector<double> values(static_cast<std::size_t>(estimate.rows * estimate.columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = of(static_cast<std::int64_t>(i));
  return array_of(std::move(values), shape_of(*one.stored));
}

// Adds "value" and "bound" for outputs that have them.
void add_estimate(const cases::Expectation& one, nb::dict& to) {
  const reference::Estimate* const estimate = one.truth->estimate();
  if (estimate == nullptr) return;
  to["value"] = each_element(one, [&](std::int64_t i) { return estimate->centre(i); });
  to["bound"] = each_element(one, [&](std::int64_t i) { return estimate->bound(i); });
}

// Adds "sigma" and "worst", from which the bound follows.
void add_error_model(const cases::Expectation& one, nb::dict& to) {
  const reference::Estimate* const estimate = one.truth->estimate();
  if (estimate == nullptr) return;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  to["sigma"] = each_element(one, [&](std::int64_t i) { return estimate->sigma[at(i)]; });
  to["worst"] = each_element(one, [&](std::int64_t i) { return estimate->worst[at(i)]; });
}

void add_errors(const cases::Expectation& one, nb::dict& to) {
  const reference::Estimate* const estimate = one.truth->estimate();
  if (estimate == nullptr) return;
  to["error_over_bound"] = each_element(one, [&](std::int64_t i) {
    const std::int64_t row = i / estimate->columns, column = i % estimate->columns;
    if (!cases::is_promised(one.promised, row)) return std::numeric_limits<double>::quiet_NaN();
    return std::abs(one.stored->value(row, column) - estimate->centre(i)) / estimate->bound(i);
  });
}

nb::dict to_python(const cases::TensorReport& report) {
  nb::dict made;
  made["tensor"] = report.tensor;
  made["passed"] = report.passed();
  made["rows_compared"] = report.rows_compared;
  made["rows_total"] = report.rows_total;
  made["elements_compared"] = report.elements_compared;
  made["wrong_elements"] = report.wrong_elements;
  made["wrong_rows"] = report.wrong_rows;
  made["margin"] = report.margin;
  made["failures"] = report.failures;
  made["pattern"] = report.pattern;
  return made;
}

// Returns the reports, and a text such as "right if floor = 1e-4: declare it" or "".
nb::tuple judge(const std::string& op, const std::map<std::string, Array>& arrays,
                const std::map<std::string, std::int64_t>& integers,
                const std::map<std::string, std::string>& words,
                const std::map<std::string, double>& reals,
                const cases::NumericSettings& numerics) {
  const cases::GivenCall call = call_of(arrays, integers, words, reals);
  const cases::OutsideCall judged(op, call, numerics, true);
  const cases::CallVerdict verdict = judged.judge();
  nb::list reports;
  for (const cases::JudgedOutput& output : verdict.outputs) {
    nb::dict report = to_python(output.report);
    add_estimate(output.expected, report);
    add_errors(output.expected, report);
    reports.append(report);
  }
  return nb::make_tuple(reports, verdict.right_if);
}

// Returns the right outputs for the inputs, and which of their bits are promised.
nb::dict right(const std::string& op, const std::map<std::string, Array>& arrays,
               const std::map<std::string, std::int64_t>& integers,
               const std::map<std::string, std::string>& words,
               const std::map<std::string, double>& reals, const cases::NumericSettings& numerics) {
  const cases::GivenCall call = call_of(arrays, integers, words, reals);
  const cases::OutsideCall judged(op, call, numerics, false);
  cases::RightOutputs found = cases::right_outputs(
      judged.tensors(), [&](const cases::TensorSet& tensors) { return judged.expect(tensors); });
  if (!found.refused.empty()) throw cases::BadRow(op + ": " + found.refused);
  cases::TensorSet all = judged.tensors();
  for (const HostTensor& output : found.outputs.all()) {
    all.at(output.spec().name).bytes() = output.bytes();
  }
  nb::dict outputs;
  for (const cases::Expectation& one : judged.expect(all)) {
    const std::string& name = one.stored->spec().name;
    if (!all.contains(name) || outputs.contains(name.c_str())) continue;
    nb::dict output;
    output["stored"] = stored(all.at(name));
    add_estimate(one, output);
    add_error_model(one, output);
    outputs[name.c_str()] = output;
  }
  for (const HostTensor& tensor : found.outputs.all()) {
    const std::string& name = tensor.spec().name;
    if (tensor.spec().role != cases::Role::output || outputs.contains(name.c_str())) continue;
    nb::dict output;
    output["stored"] = stored(tensor);
    outputs[name.c_str()] = output;
  }
  return outputs;
}

nb::list arguments(const std::string& op) {
  nb::list all;
  for (const cases::OpArgument& argument : cases::arguments_of(cases::known_op(op))) {
    nb::dict made;
    made["name"] = argument.name;
    made["kind"] = std::string(name_of(argument.kind));
    made["type"] = argument.type;
    made["shape"] = argument.shape;
    made["says"] = argument.says;
    made["optional"] = argument.optional;
    all.append(made);
  }
  return all;
}

std::map<std::string, std::string> ops() {
  std::map<std::string, std::string> all;
  for (const cases::OpDefinition& op : cases::all_ops()) {
    all[std::string(op.name)] = std::string(op.summary);
  }
  return all;
}

}  // namespace

}  // namespace plumb::python

NB_MODULE(_plumb, module) {
  module.doc() = "plumb's reference and judge";
  nb::exception<plumb::cases::BadRow>(module, "BadCall", PyExc_ValueError);
  module.def("ops", &plumb::python::ops, "Each op's name and what it does.");
  module.def("arguments", &plumb::python::arguments, "op"_a, "What the op takes.");
  module.def("numeric_words", &plumb::cases::numeric_words, "Words of members of plumb_numerics.");
  module.def("judge", &plumb::python::judge, "op"_a, "arrays"_a, "integers"_a, "words"_a, "reals"_a,
             "numerics"_a, "A report on each output, and under which contract all are right.");
  module.def("reference", &plumb::python::right, "op"_a, "arrays"_a, "integers"_a, "words"_a,
             "reals"_a, "numerics"_a, "The outputs as they should be.");
  plumb::python::add_kernels(module);
  plumb::python::add_tracked(module);
  plumb::python::add_own_ops(module);
}
