// SPDX-License-Identifier: Apache-2.0
//
// Floors of ops, and the share of the measured time that the floor is. The floor is the larger of
// two times: that of the op's bytes at the card's copy rate (Problem::moved_bytes), and that of its
// operations at the rate of the unit that executes them (Problem::reference_work).
#include "tools/bench/bench_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cases/drivers/op_chain.h"
#include "cases/drivers/session.h"
#include "cases/tensors/fill.h"

namespace plumb::tools {

namespace {

// Minimum size of all buffer sets of an op: more than three times the L2 of the cards here.
constexpr double kRotatedBytes = 512 << 20;
constexpr std::size_t kLeastSets = 3;

// Times of an op in seconds: measured, and the floors of its bytes and its operations.
struct OpTimes {
  std::vector<double> spent;
  double bytes = 0, operations = 0;
  double floor() const { return std::max(bytes, operations); }
};

// Measures the rate (work per second) of a launch that does `amount` of work.
Measurement rate(DeviceTimer& timer, const std::string& name, const std::string& unit,
                 double amount, const DeviceLaunch& launch) {
  std::vector<double> rates;
  for (const double seconds : timer.seconds({launch})) rates.push_back(amount / seconds / 1e12);
  const Summary summary = summarize(rates);
  return {name, summary.median, summary.spread, unit};
}

void require(plumb_status status) {
  if (status != PLUMB_OK) throw std::runtime_error("a kernel that measures a rate failed");
}

}  // namespace

DeviceRates measure_rates(const std::string& platform, const device::RateKernels& kernels,
                          std::vector<Measurement>& measured) {
  constexpr std::int64_t kBytes = 1 << 30;
  const auto device = device::open_device(platform);
  const device::Stream stream = device->create_stream();
  DeviceTimer timer(*device, stream);
  void *const to = device->allocate(kBytes, "bench"), *const from =
                                                          device->allocate(kBytes, "bench");
  device->fill(from, 0x3c, kBytes, stream);
  measured = {rate(timer, "copy by a kernel, read and written", "TB/s", 2.0 * kBytes,
                   [&] { require(kernels.copy(to, from, kBytes, stream).status); }),
              rate(timer, "copy by the runtime", "TB/s", 2.0 * kBytes,
                   [&] { device->copy(to, from, kBytes, stream); })};
  auto* const out = static_cast<float*>(to);
  for (const auto& [name, kernel] :
       {std::pair("fp32 multiply-adds", kernels.multiply_add),
        std::pair("bf16 matrix products", kernels.multiply_matrices)}) {
    measured.push_back(rate(timer, name, "Tflop/s", kernel(out, stream).amount,
                            [&] { require(kernel(out, stream).status); }));
  }
  return {1e12 * std::max(measured[0].value, measured[1].value), 1e12 * measured[2].value,
          1e12 * measured[3].value};
}

namespace {

std::vector<double> seconds_of(const cases::Problem& problem, const cases::Case& which,
                               const std::string& platform, double bytes) {
  cases::RunOptions options;
  options.platform = platform;
  cases::CaseResult result;
  const cases::Point point;
  cases::Session session(problem, which, point, options, result);
  const auto most = static_cast<std::size_t>(std::ceil(kRotatedBytes / bytes)) + 1;
  std::vector<cases::Buffers> sets(std::max(kLeastSets, most));
  std::vector<DeviceLaunch> launches;
  for (cases::Buffers& set : sets) {
    set = session.make_buffers();
    if (&set == &sets.front()) {
      session.set_inputs({.seed = cases::seed_of(which.op->name), .live = problem.capacity()}, set);
    } else {
      session.set_inputs_of(session, set);
    }
    session.poison(set, cases::Poison::zero);
    launches.push_back([&session, &set] { session.launch(set); });
  }
  return DeviceTimer(session.device(), session.stream()).seconds(launches);
}

OpTimes times_of(const std::string& platform, const DeviceOp& op, const DeviceRates& rates) {
  const cases::OpDefinition& definition = cases::find_op(op.op);
  const cases::Case which{&definition, cases::ad_hoc_row(definition, op.integers, op.words)};
  const auto problem =
      definition.make_problem(which.row, device::open_device(platform)->properties());
  const double bytes = problem->moved_bytes(problem->make_tensors());
  const double operations = 2 * problem->reference_work().multiply_adds;
  try {
    return {seconds_of(*problem, which, platform, bytes), bytes / rates.copy,
            operations / (op.multiplies_matrices ? rates.matrix : rates.multiply_add)};
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", op.name(), error.what()));
  }
}

Measurement fraction(const std::string& name, double floor, const std::vector<double>& seconds,
                     Target target, std::string note) {
  std::vector<double> fractions;
  for (const double second : seconds) fractions.push_back(floor / second);
  const Summary summary = summarize(fractions);
  const double median = summarize(seconds).median;
  return {name,
          summary.median,
          summary.spread,
          "",
          target,
          std::move(note),
          {{"seconds", median, "s"}, {"floor", floor, "s"}}};
}

// An op without a target gets two lines: its share of the matrix rate and of the copy rate.
void add_op(const DeviceOp& op, const OpTimes& times, std::vector<Measurement>& measured) {
  const std::string note =
      fmt::format("{:.4g} us; bytes {:.4g} us, operations {:.4g} us",
                  1e6 * summarize(times.spent).median, 1e6 * times.bytes, 1e6 * times.operations);
  if (std::isfinite(op.target.least)) {
    measured.push_back(fraction(op.name(), times.floor(), times.spent, op.target, note));
    return;
  }
  measured.push_back(
      fraction(op.name() + ", of the matrix rate", times.operations, times.spent, {}, note));
  measured.push_back(fraction(op.name() + ", of the copy rate", times.bytes, times.spent, {}, ""));
}

void add_torch(const DeviceOp& op, const OpTimes& times, const DeviceBenchOptions& options,
               std::vector<Measurement>& measured) {
  const auto found = options.torch_topk.find(op.name());
  if (found == options.torch_topk.end()) return;
  measured.push_back(fraction(op.name() + ", torch.topk's time over its", 1e-3 * found->second,
                              times.spent, {.least = 5},
                              fmt::format("torch.topk {:.4g} us", 1e3 * found->second)));
}

std::vector<DeviceOp> chosen_ops(const std::vector<std::string>& only) {
  const std::vector<DeviceOp> all = device_ops();
  if (only.empty()) return all;
  std::vector<DeviceOp> ops;
  for (const std::string& name : only) {
    const std::size_t before = ops.size();
    for (const DeviceOp& op : all) {
      if (op.op == name) ops.push_back(op);
    }
    if (ops.size() > before) continue;
    std::vector<std::string_view> names;
    for (const DeviceOp& op : all) {
      if (std::find(names.begin(), names.end(), op.op) == names.end()) names.push_back(op.op);
    }
    throw UsageError(
        fmt::format("no device benchmark of \"{}\"; there are {}", name, fmt::join(names, ", ")));
  }
  return ops;
}

}  // namespace

std::vector<Measurement> bench_device(const DeviceBenchOptions& options) {
  const std::vector<DeviceOp> ops = chosen_ops(options.only);
  const device::RateKernels* kernels = device::rate_kernels(options.platform);
  if (kernels == nullptr) {
    throw UsageError(
        fmt::format("{}: there are no kernels to measure its rates", options.platform));
  }
  std::vector<Measurement> measured;
  const DeviceRates rates = measure_rates(options.platform, *kernels, measured);
  const auto& implementation = device::builtin_implementation(options.platform);
  for (const DeviceOp& op : ops) {
    if (device::find_entry(implementation, op.op) == nullptr) continue;
    const OpTimes times = times_of(options.platform, op, rates);
    add_op(op, times, measured);
    add_torch(op, times, options, measured);
  }
  return measured;
}

}  // namespace plumb::tools
