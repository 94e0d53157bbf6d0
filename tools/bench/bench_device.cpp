// SPDX-License-Identifier: Apache-2.0
//
// Floors and fractions. The floor of an op is the larger of two times: what its bytes take at the
// card's copy rate, what its operations take at the rate of the unit that does them.
#include "tools/bench/bench_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plumb::tools {

namespace {

// What one turn of the buffers has to exceed: more than three times the L2 of any card here.
constexpr double kRotatedBytes = 512 << 20;
constexpr int kLeastSets = 3;

struct DeviceRates {
  double copy = 0;                      // bytes per second, read and written
  double multiply_add = 0, matrix = 0;  // operations per second
  double seconds_of_bytes(const DeviceOp& op) const { return op.bytes / copy; }
  double seconds_of_operations(const DeviceOp& op) const {
    return 2 * op.multiply_adds / multiply_add + 2 * op.matrix_multiply_adds / matrix;
  }
  double floor(const DeviceOp& op) const {
    return std::max(seconds_of_bytes(op), seconds_of_operations(op));
  }
};

// Work per second of the launches, each of which does `amount`.
Measurement rate(DeviceBed& bed, const std::string& name, const std::string& unit, double scale,
                 double amount, const std::vector<DeviceLaunch>& launches) {
  std::vector<double> rates;
  for (const double seconds : bed.seconds(name, launches)) {
    rates.push_back(amount / seconds / scale);
  }
  const Summary summary = summarize(rates);
  return {name, summary.median, summary.spread, unit};
}

std::vector<Measurement> copy_rates(DeviceBed& bed, const device::RateKernels& kernels) {
  constexpr std::int64_t kBytes = 1 << 30;
  auto* const to = bed.room<std::uint8_t>(kBytes);
  const float* const from = bed.fp32(kBytes / 4);
  const auto by_kernel = [=](device::Stream stream) {
    return kernels.copy(to, from, kBytes, stream).status;
  };
  const auto by_runtime = [&bed, to, from](device::Stream stream) {
    bed.device().copy(to, from, kBytes, stream);
    return PLUMB_OK;
  };
  std::vector<Measurement> measured{
      rate(bed, "copy by a kernel, read and written", "TB/s", 1e12, 2.0 * kBytes, {by_kernel}),
      rate(bed, "copy by the runtime", "TB/s", 1e12, 2.0 * kBytes, {by_runtime})};
  bed.release();
  return measured;
}

Measurement operation_rate(DeviceBed& bed, const std::string& name,
                           device::RateWork (*kernel)(float*, device::Stream)) {
  auto* const out = bed.room<float>(device::kRateThreads);
  const double amount = kernel(out, bed.stream()).amount;
  const Measurement measured =
      rate(bed, name, "Tflop/s", 1e12, amount,
           {[=](device::Stream stream) { return kernel(out, stream).status; }});
  bed.release();
  return measured;
}

DeviceRates measure_rates(DeviceBed& bed, const device::RateKernels& kernels,
                          std::vector<Measurement>& measured) {
  measured = copy_rates(bed, kernels);
  measured.push_back(operation_rate(bed, "fp32 multiply-adds", kernels.multiply_add));
  measured.push_back(operation_rate(bed, "bf16 matrix products", kernels.multiply_matrices));
  return {1e12 * std::max(measured[0].value, measured[1].value), 1e12 * measured[2].value,
          1e12 * measured[3].value};
}

std::vector<double> seconds_of(DeviceBed& bed, const DeviceOp& op, const device::OpEntry& entry) {
  const int sets = std::max(kLeastSets, static_cast<int>(std::ceil(kRotatedBytes / op.bytes)) + 1);
  std::vector<DeviceLaunch> launches;
  for (int set = 0; set < sets; ++set) launches.push_back(op.make_set(bed, entry));
  const std::vector<double> seconds = bed.seconds(op.name, launches);
  launches.clear();
  bed.release();
  return seconds;
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

// An op that no floor is asked of says what it takes of either rate.
void add_op(const DeviceOp& op, const DeviceRates& rates, const std::vector<double>& seconds,
            std::vector<Measurement>& measured) {
  const double median = summarize(seconds).median;
  const std::string note =
      fmt::format("{:.4g} us; bytes {:.4g} us, operations {:.4g} us", 1e6 * median,
                  1e6 * rates.seconds_of_bytes(op), 1e6 * rates.seconds_of_operations(op));
  if (std::isfinite(op.target.least)) {
    measured.push_back(fraction(op.name, rates.floor(op), seconds, op.target, note));
    return;
  }
  measured.push_back(fraction(op.name + ", of the matrix rate", rates.seconds_of_operations(op),
                              seconds, {}, note));
  measured.push_back(
      fraction(op.name + ", of the copy rate", rates.seconds_of_bytes(op), seconds, {}, ""));
}

void add_torch(const DeviceOp& op, const std::vector<double>& seconds,
               const DeviceBenchOptions& options, std::vector<Measurement>& measured) {
  const auto found = options.torch_topk.find(op.name);
  if (found == options.torch_topk.end()) return;
  measured.push_back(fraction(op.name + ", torch.topk's time over its", 1e-3 * found->second,
                              seconds, {.least = 5},
                              fmt::format("torch.topk {:.4g} us", 1e3 * found->second)));
}

std::vector<DeviceOp> chosen(const std::vector<std::string>& only) {
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
  const std::vector<DeviceOp> ops = chosen(options.only);
  DeviceBed bed(options.platform);
  const device::RateKernels* kernels = device::rate_kernels(options.platform);
  if (kernels == nullptr) {
    throw UsageError(
        fmt::format("{}: there are no kernels to measure its rates", options.platform));
  }
  std::vector<Measurement> measured;
  const DeviceRates rates = measure_rates(bed, *kernels, measured);
  const auto& implementation = device::builtin_implementation(options.platform);
  for (const DeviceOp& op : ops) {
    const device::OpEntry* entry = device::find_entry(implementation, op.op);
    if (entry == nullptr) continue;
    const std::vector<double> seconds = seconds_of(bed, op, *entry);
    add_op(op, rates, seconds, measured);
    add_torch(op, seconds, options, measured);
  }
  return measured;
}

}  // namespace plumb::tools
