// SPDX-License-Identifier: Apache-2.0
#include "python/tracked.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/numpy_arrays.h"
#include "reference/tracked/tracked.h"
#include "reference/tracked/tracked_node.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace plumb::python {

namespace {

using reference::Tracked;
using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

reference::Format format_of(const std::string& dtype) {
  if (dtype == "f32") return reference::Format::f32;
  if (dtype == "tf32") return reference::Format::tf32;
  if (dtype == "bf16") return reference::Format::bf16;
  throw std::invalid_argument(fmt::format("rounded to {}: the format is f32, tf32 or bf16", dtype));
}

Tracked exact(const Doubles& array, const reference::Numerics& numerics) {
  reference::TrackedSizes sizes;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    sizes.push_back(static_cast<std::int64_t>(array.shape(i)));
  }
  return {{array.data(), array.data() + array.size()}, std::move(sizes), numerics};
}

// Turns an operand into a tracked array. Numbers are rounded to fp32, because every implementation
// has them in fp32; arrays of numbers are exact.
Tracked operand(const Tracked& beside, nb::handle value) {
  if (nb::isinstance<Tracked>(value)) return nb::cast<Tracked>(value);
  const reference::Numerics& numerics = *beside.node()->numerics;
  if (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr())) {
    return {{static_cast<double>(nb::cast<float>(value))}, {}, numerics};
  }
  return exact(nb::cast<Doubles>(value), numerics);
}

// Numerics of the call whose reference this thread computes.
thread_local const reference::Numerics* current_numerics = nullptr;

Tracked exact_here(const Doubles& array) {
  if (current_numerics == nullptr) {
    throw std::invalid_argument("array: only the reference of an op makes arrays");
  }
  return exact(array, *current_numerics);
}

std::vector<std::int64_t> indices_of(nb::handle indices) {
  using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  const auto array = nb::cast<Indices>(indices);
  return {array.data(), array.data() + array.size()};
}

std::size_t dimension_of(const Tracked& a, std::int64_t axis) {
  const auto dimensions = std::ssize(a.sizes());
  const std::int64_t dimension = axis < 0 ? axis + dimensions : axis;
  if (dimension < 0 || dimension >= dimensions) {
    throw std::invalid_argument(
        fmt::format("no axis {} of an array of {} dimensions", axis, dimensions));
  }
  return static_cast<std::size_t>(dimension);
}

// Wraps a reduction over a dimension, which is removed unless keepdims.
auto over_axis(Tracked (*of)(Tracked, std::size_t)) {
  return [of](const Tracked& a, std::int64_t axis, bool keepdims) {
    const std::size_t dimension = dimension_of(a, axis);
    Tracked made = of(a, dimension);
    if (keepdims) return made;
    reference::TrackedSizes sizes = made.sizes();
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dimension));
    return reshaped(std::move(made), std::move(sizes));
  };
}

void add_operators(nb::class_<Tracked>& tracked) {
  tracked.def("__add__", [](const Tracked& a, nb::handle b) { return a + operand(a, b); })
      .def("__radd__", [](const Tracked& a, nb::handle b) { return operand(a, b) + a; })
      .def("__sub__", [](const Tracked& a, nb::handle b) { return a - operand(a, b); })
      .def("__rsub__", [](const Tracked& a, nb::handle b) { return operand(a, b) - a; })
      .def("__mul__", [](const Tracked& a, nb::handle b) { return a * operand(a, b); })
      .def("__rmul__", [](const Tracked& a, nb::handle b) { return operand(a, b) * a; })
      .def("__truediv__", [](const Tracked& a, nb::handle b) { return a / operand(a, b); })
      .def("__rtruediv__", [](const Tracked& a, nb::handle b) { return operand(a, b) / a; })
      .def("__matmul__", [](const Tracked& a, nb::handle b) { return matmul(a, operand(a, b)); })
      .def("__rmatmul__", [](const Tracked& a, nb::handle b) { return matmul(operand(a, b), a); })
      .def("__neg__", [](const Tracked& a) { return -a; })
      .def("__abs__", [](const Tracked& a) { return abs(a); });
  tracked.attr("__array_ufunc__") = nb::none();  // makes numpy use the operators of this class
}

void add_functions(nb::module_& module) {
  const auto of_one = [&](const char* name, Tracked (*function)(Tracked)) {
    module.def(name, [function](const Tracked& a) { return function(a); }, "a"_a);
  };
  of_one("tracked_exp", &reference::exp);
  of_one("tracked_log", &reference::log);
  of_one("tracked_sqrt", &reference::sqrt);
  of_one("tracked_rsqrt", &reference::rsqrt);
  of_one("tracked_sigmoid", &reference::sigmoid);
  of_one("tracked_tanh", &reference::tanh);
  of_one("tracked_softplus", &reference::softplus);
  const auto over_one = [&](const char* name, Tracked (*function)(Tracked, std::size_t)) {
    module.def(name, over_axis(function), "a"_a, "axis"_a, "keepdims"_a = false);
  };
  over_one("tracked_sum", &reference::sum);
  over_one("tracked_mean", &reference::mean);
  over_one("tracked_max", static_cast<Tracked (*)(Tracked, std::size_t)>(&reference::max));
  module.def("tracked_maximum",
             [](const Tracked& a, nb::handle b) { return max(a, operand(a, b)); });
  module.def("tracked_where", [](const Doubles& condition, nb::handle a, nb::handle b) {
    const Tracked first =
        nb::isinstance<Tracked>(a) ? nb::cast<Tracked>(a) : operand(nb::cast<Tracked>(b), a);
    return select(exact(condition, *first.node()->numerics), first, operand(first, b));
  });
  module.def("tracked_array", &exact_here);
  module.def("tracked_transposed", [](const Tracked& a) { return transposed(a); });
  module.def("tracked_gathered", [](const Tracked& a, std::int64_t axis, nb::handle indices) {
    return gather(a, dimension_of(a, axis), indices_of(indices));
  });
  module.def("tracked_scattered",
             [](const Tracked& a, std::int64_t axis, nb::handle indices, std::int64_t size) {
               return scatter(a, dimension_of(a, axis), indices_of(indices), size);
             });
  module.def("tracked_truncated", [](const Tracked& a, const std::string& dtype) {
    return truncated(a, format_of(dtype));
  });
  module.def("tracked_rounded", [](const Tracked& a, const std::string& dtype) {
    return rounded(a, format_of(dtype));
  });
  module.def("tracked_reshaped", [](const Tracked& a, const std::vector<std::int64_t>& sizes) {
    return reshaped(a, sizes);
  });
  module.def("tracked_sliced",
             [](const Tracked& a, std::int64_t axis, std::int64_t first, std::int64_t count) {
               return sliced(a, dimension_of(a, axis), first, count);
             });
  module.def("tracked_joined", [](const std::vector<Tracked>& parts, std::int64_t axis) {
    if (parts.empty()) throw std::invalid_argument("concatenate: no array");
    return joined(parts, dimension_of(parts.front(), axis));
  });
}

}  // namespace

NumericsOfCall::NumericsOfCall(const reference::Numerics& numerics)
    : outer_(std::exchange(current_numerics, &numerics)) {}
NumericsOfCall::~NumericsOfCall() { current_numerics = outer_; }

void add_tracked(nb::module_& module) {
  nb::class_<Tracked> tracked(module, "Tracked");
  tracked
      .def_prop_ro("shape",
                   [](const Tracked& a) {
                     nb::list sizes;
                     for (const std::int64_t size : a.sizes()) sizes.append(size);
                     return nb::tuple(sizes);
                   })
      .def_prop_ro("value", [](const Tracked& a) {
        return array_of(a.values(), {a.sizes().begin(), a.sizes().end()});
      });
  add_operators(tracked);
  add_functions(module);
}

}  // namespace plumb::python
