// SPDX-License-Identifier: Apache-2.0
#include "python/kernels.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cases/studies/outside_call.h"
#include "cases/tables/launch_arguments.h"
#include "cases/tables/op_table.h"
#include "device/plugin/float_environment.h"
#include "device/plugin/hosted_device.h"
#include "device/plugin/known_ops.h"
#include "device/plugin/services.h"
#include "device/remote/serve_plugin.h"
#include "device/sim/memory/page_fault.h"
#include "python/memory_extents.h"
#include "python/run_here.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace plumb::python {

namespace {

using cases::LaunchArgument;
using cases::LaunchTensor;
using device::DeviceError;
using device::ErrorKind;

// A Python function as a kernel. The objects belong to Python and live as long as the process.
struct PythonKernel {
  const cases::OpDefinition* op = nullptr;
  std::string name;
  nb::object before_launch, run;
};

// Indexed by position_of_op; nullptr: no function. Never destroyed, because Python may have ended
// by then.
std::array<PythonKernel*, device::kMostOps> kernels{};

// Tuple from which _kernels.py makes an array: address, shape, strides in elements, dtype, format.
nb::object to_python(const LaunchTensor& tensor) {
  nb::list shape, strides;
  for (const std::int64_t size : tensor.shape) shape.append(size);
  for (const std::int64_t stride : tensor.strides) strides.append(stride);
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(tensor.data), nb::tuple(shape),
                        nb::tuple(strides), std::string(name_of(tensor.dtype)), tensor.format);
}

nb::object to_python(const LaunchArgument& argument) {
  if (const auto* tensor = std::get_if<LaunchTensor>(&argument.value)) return to_python(*tensor);
  if (const auto* integer = std::get_if<std::int64_t>(&argument.value)) return nb::int_(*integer);
  if (const auto* real = std::get_if<float>(&argument.value)) return nb::float_(*real);
  if (const auto* word = std::get_if<std::string>(&argument.value)) {
    return nb::str(word->c_str());
  }
  return nb::none();
}

nb::dict arguments_of(const PythonKernel& kernel, const void* params) {
  const auto bytes_from = [](const void* at) { return MemoryExtents::all().bytes_from(at); };
  nb::dict made;
  for (const LaunchArgument& one : cases::launch_arguments(*kernel.op, params, bytes_from)) {
    made[one.name.c_str()] = to_python(one);
  }
  return made;
}

// Turns an unexpected error in Python code into a DeviceError.
[[noreturn]] void rethrow(const nb::python_error& error) {
  throw DeviceError(ErrorKind::other, error.what());
}

// After an invalid memory access in a function, a long jump leaves the interpreter's frames. This
// releases Python's lock, so that other threads do not wait forever. No function runs in this
// process afterwards, because the thread's Python state has lost its frames.
thread_local bool inside_python = false;
std::atomic<bool> interpreter_lost = false;

void lose_interpreter() {
  if (!std::exchange(inside_python, false)) return;
  interpreter_lost = true;
  PyEval_SaveThread();
}

void require_interpreter() {
  if (!interpreter_lost) return;
  throw DeviceError(ErrorKind::other,
                    "an earlier call accessed memory outside of its tensors, and the interpreter "
                    "cannot go on");
}

// Marks that this thread runs a function with Python's lock held. Throws DeviceError if the
// interpreter is lost.
class InsidePython {
 public:
  InsidePython() {
    require_interpreter();  // may have been lost during the wait for the lock
    inside_python = true;
  }
  ~InsidePython() { inside_python = false; }
  InsidePython(const InsidePython&) = delete;
  InsidePython& operator=(const InsidePython&) = delete;
};

// Calls the function with Python's lock held.
void call(const PythonKernel& kernel, const std::string& platform, device::Stream stream,
          const void* params) {
  require_interpreter();
  const nb::gil_scoped_acquire lock;
  const InsidePython inside;
  try {
    const nb::object said = kernel.run(platform, reinterpret_cast<std::uintptr_t>(stream),
                                       arguments_of(kernel, params));
    if (said.is_none()) return;
    const auto [kind, text] = nb::cast<std::pair<std::string, std::string>>(said);
    throw DeviceError(kind == "unsupported" ? ErrorKind::unsupported : ErrorKind::other, text);
  } catch (const nb::python_error& error) {
    rethrow(error);
  }
}

// Header in front of the frozen launch arguments, padded to their alignment.
struct alignas(std::max_align_t) FrozenHeader {
  std::size_t op = 0;
  const char* platform = nullptr;  // string of the device
};

void run_frozen(const void* arguments) {
  const auto& header = *static_cast<const FrozenHeader*>(arguments);
  const PythonKernel& kernel = *kernels[header.op];
  const cases::OpTable& table = *kernel.op->table;
  const auto* begin = reinterpret_cast<const std::byte*>(&header + 1);
  const std::size_t bytes = cases::frozen_bytes(table);
  std::vector<std::max_align_t> copy(bytes / sizeof(std::max_align_t) + 1);
  std::memcpy(copy.data(), begin, bytes);
  const void* params = cases::thaw_launch(table, reinterpret_cast<std::byte*>(copy.data()));
  call(kernel, header.platform, table.stream_of(params), params);
}

// Reason why the function does not support the call; "": it does.
std::string why_not(const PythonKernel& kernel, const std::string& platform, const void* params) {
  if (kernel.before_launch.is_none() || interpreter_lost) return "";
  const nb::gil_scoped_acquire lock;
  try {
    const nb::object said = kernel.before_launch(platform, arguments_of(kernel, params));
    return said.is_none() ? "" : nb::cast<std::string>(said);
  } catch (const nb::python_error& error) {
    rethrow(error);
  }
}

plumb_status enqueue(std::size_t op, const plumb_device& device, plumb_stream stream,
                     const void* params) {
  const PythonKernel& kernel = *kernels[op];
  const cases::OpTable& table = *kernel.op->table;
  std::vector<std::byte> bytes(sizeof(FrozenHeader));
  const FrozenHeader header{op, device.platform};
  std::memcpy(bytes.data(), &header, sizeof header);
  const std::vector<std::byte> frozen = cases::freeze_launch(table, params);
  bytes.insert(bytes.end(), frozen.begin(), frozen.end());
  const plumb_host& host = device::plugin_services();
  return host.launch(host.context, kernel.name.c_str(), &run_frozen, bytes.data(), bytes.size(),
                     stream);
}

plumb_status launch(std::size_t op, const void* params) {
  const PythonKernel& kernel = *kernels[op];
  const device::Stream stream = kernel.op->table->stream_of(params);
  const plumb_host& host = device::plugin_services();
  device::begin_plugin_call();
  const plumb_device* device = host.device(host.context, stream);
  if (device == nullptr) throw DeviceError(ErrorKind::invalid_argument, "an unknown stream");
  if (const std::string why = why_not(kernel, device->platform, params); !why.empty()) {
    host.explain(host.context, why.c_str());
    return PLUMB_UNSUPPORTED;
  }
  plumb_status status = PLUMB_OK;
  if (device->simulated) {
    status = enqueue(op, *device, stream, params);
  } else {
    const device::KeptFloatEnvironment kept(kernel.name);
    call(kernel, device->platform, stream, params);
  }
  device::rethrow_service_error();
  return status;
}

template <std::size_t kOp>
plumb_status launcher(const void* params) {
  return launch(kOp, params);
}
using Launcher = plumb_status (*)(const void* params);
template <std::size_t... kOp>
constexpr std::array<Launcher, device::kMostOps> make_launchers(std::index_sequence<kOp...>) {
  return {&launcher<kOp>...};
}
constexpr std::array<Launcher, device::kMostOps> kLaunchers =
    make_launchers(std::make_index_sequence<device::kMostOps>());

// Takes over standard input. -1: it is not a socket of plumb.
int take_control() {
  static std::optional<device::remote::OwnedDescriptor> control;
  control = device::remote::take_control();
  return control ? control->number() : -1;
}

void serve(int control, const std::string& name, const std::string& version) {
  device::sim::on_abandoned(&lose_interpreter);
  device::remote::Introduction about{name, version, PythonKernels::all().entries()};
  const nb::gil_scoped_release unlocked;
  device::remote::serve_implementation(std::move(about), &open_for_python,
                                       device::remote::OwnedDescriptor(control));
}

void refuse(int control, const std::string& why) {
  device::remote::refuse_to_serve(device::remote::OwnedDescriptor(control), why);
}

nb::dict launch_argument_kinds(const std::string& op) {
  nb::dict all;
  for (const auto& [name, kind] : cases::launch_argument_names(cases::known_op(op))) {
    all[name.c_str()] = kind;
  }
  return all;
}

}  // namespace

PythonKernels& PythonKernels::all() {
  static auto* one = new PythonKernels;
  return *one;
}

void PythonKernels::add(const std::string& op, const std::string& name,
                        const std::map<std::string, double>& numerics, const std::string& contract,
                        nb::object before_launch, nb::object run) {
  const cases::OpDefinition& definition = cases::known_op(op);
  const std::size_t position = device::position_of_op(op);
  kernels[position] = new PythonKernel{&definition, name, std::move(before_launch), std::move(run)};
  entries_.push_back({.op = definition.name,
                      .launch = kLaunchers[position],
                      .numerics = cases::numerics_with(numerics),
                      .contract = contract});
}

std::unique_ptr<device::Device> open_for_python(std::string_view platform,
                                                const device::Conditions& conditions) {
  return std::make_unique<device::HostedDevice>(
      std::make_unique<MeasuredDevice>(device::open_device(platform, conditions)));
}

void add_kernels(nb::module_& module) {
  module.def("launch_arguments", &launch_argument_kinds, "op"_a,
             "Names of a kernel's arguments, and the kind of each.");
  module.def(
      "add_kernel",
      [](const std::string& op, const std::string& name,
         const std::map<std::string, double>& numerics, const std::string& contract,
         nb::object before_launch, nb::object run) {
        PythonKernels::all().add(op, name, numerics, contract, std::move(before_launch),
                                 std::move(run));
      },
      "op"_a, "name"_a, "numerics"_a, "contract"_a, "before_launch"_a.none(), "run"_a,
      "A function for serve() or run_here().");
  module.def("clear_kernels", [] { PythonKernels::all().clear(); });
  module.def("run_here", &run_here, "patterns"_a, "tier"_a, "platforms"_a,
             "Cases of the added functions, in this process.");
  module.def("interface_digest", [] { return fmt::format("{:x}", device::interface_digest()); });
  module.def("take_control", &take_control);
  module.def("serve", &serve, "control"_a, "name"_a, "version"_a);
  module.def("refuse", &refuse, "control"_a, "why"_a);
}

}  // namespace plumb::python
