// SPDX-License-Identifier: Apache-2.0
//
// Overheads of the simulator per barrier and thread, per shuffle and lane, per thread and per
// launch. Each is measured with a launch that does only this, or with many empty launches.
#include <fmt/format.h>

#include <memory>

#include "tools/bench/bench.h"
#include "tools/bench/bench_kernels.h"

namespace plumb::tools {

namespace {

using device::BenchKernel;
using device::BenchLaunch;

#ifdef PLUMB_CHECKED_KERNELS
constexpr bool kCheckedKernels = true;
#else
constexpr bool kCheckedKernels = false;
#endif

plumb_status launch_bench(bool checked, const BenchLaunch& launch, std::int32_t* data,
                          device::Stream stream) {
  if constexpr (kCheckedKernels) {
    if (checked) return device::checked_kernels::launch_bench(launch, data, stream);
  }
  return device::kernels::launch_bench(launch, data, stream);
}

// A simulated device with memory for the kernels.
class SimulatorBed {
 public:
  SimulatorBed(std::string_view platform, bool checked) : checked_(checked) {
    device::Conditions conditions;
    conditions.checked = checked;
    device_ = device::open_device(platform, conditions);
    stream_ = device_->create_stream();
    data_ = static_cast<std::int32_t*>(device_->allocate(kBytes, "bench"));
    device_->fill(data_, 0, kBytes, stream_);
  }
  void run(const BenchLaunch& launch, int launches) {
    for (int i = 0; i < launches; ++i) launch_bench(checked_, launch, data_, stream_);
    device_->synchronize(stream_);
  }

 private:
  static constexpr std::size_t kBytes = 1 << 20;
  bool checked_;
  std::unique_ptr<device::Device> device_;
  device::Stream stream_ = nullptr;
  std::int32_t* data_ = nullptr;
};

struct BenchSubject {
  std::string name, unit;
  BenchLaunch launch;
  int launches = 1;
  double count = 1;  // divisor of the measured seconds
  Target target = {};
};

std::vector<BenchSubject> subjects() {
  constexpr int kTimes = 800, kThreads = 256;
  const auto one_block = [](BenchKernel kernel) {
    return BenchLaunch{kernel, 1, kThreads, kTimes};
  };
  constexpr double kAll = double{kTimes} * kThreads;
  return {
      {"barrier", "ns per thread", one_block(BenchKernel::barriers), 1, kAll, {.most = 100}},
      {"wave barrier", "ns per lane", one_block(BenchKernel::wave_barriers), 1, kAll},
      {"shuffle", "ns per lane", one_block(BenchKernel::shuffles), 1, kAll},
      {"load and store", "ns", one_block(BenchKernel::accesses), 1, kAll},
      {"empty thread", "ns per thread", {BenchKernel::empty, 512, kThreads}, 1, 512.0 * kThreads},
      {"empty block", "ns per block", {BenchKernel::empty, 4096, 1}, 1, 4096},
      {"empty launch", "ns per launch", {BenchKernel::empty, 1, 1}, 500, 500},
  };
}

void measure_bed(std::string_view platform, bool checked, std::string_view suffix,
                 std::vector<Measurement>& measured) {
  constexpr int kRepetitions = 9;
  SimulatorBed bed(platform, checked);
  const std::vector<BenchSubject> all = subjects();
  std::vector<std::function<void()>> tasks;
  for (const BenchSubject& s : all) tasks.push_back([&bed, &s] { bed.run(s.launch, s.launches); });
  const auto seconds = interleave(tasks, kRepetitions);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Summary summary = summarize(seconds[i]);
    measured.push_back({fmt::format("{}, {}", all[i].name, suffix),
                        1e9 * summary.median / all[i].count, summary.spread, all[i].unit,
                        checked ? Target{} : all[i].target});
  }
}

}  // namespace

std::vector<Measurement> bench_simulator() {
  std::vector<Measurement> measured;
  measure_bed("sim-sm90", false, "waves of 32", measured);
  measure_bed("sim-gfx942", false, "waves of 64", measured);
  if (!kCheckedKernels) return measured;
  measure_bed("sim-sm90", true, "waves of 32, checked", measured);
  measure_bed("sim-gfx942", true, "waves of 64, checked", measured);
  return measured;
}

}  // namespace plumb::tools
