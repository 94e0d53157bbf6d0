// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "tools/bench/bench_device.h"

namespace plumb::tools {

namespace {

constexpr std::int64_t kPatternNumbers = 1 << 24, kPatternStep = 4096 * 16 + 64;
constexpr double kLongEnough = 5e-3;  // of one replay
constexpr int kRepetitions = 15;

std::vector<float> normal_numbers() {
  std::mt19937_64 engine(20261121);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(kPatternNumbers);
  for (float& number : numbers) number = normal(engine);
  return numbers;
}

// The upper halves: of random numbers no worse than rounded ones.
std::vector<std::uint16_t> upper_halves(const std::vector<float>& numbers) {
  std::vector<std::uint16_t> halves(numbers.size());
  std::transform(numbers.begin(), numbers.end(), halves.begin(), [](float number) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
  });
  return halves;
}

}  // namespace

DeviceBed::DeviceBed(std::string_view platform) : device_(device::open_device(platform)) {
  stream_ = device_->create_stream();
  before_ = device_->create_timing_event();
  after_ = device_->create_timing_event();
  const std::vector<float> numbers = normal_numbers();
  fp32_pattern_ = upload(numbers);
  bf16_pattern_ = upload(upper_halves(numbers));
  memory_.clear();  // these two stay
}

void* DeviceBed::allocate(std::int64_t bytes) {
  memory_.push_back(device_->allocate(static_cast<std::size_t>(bytes), "bench"));
  return memory_.back();
}

void DeviceBed::release() {
  device_->synchronize();
  for (void* memory : memory_) device_->free(memory);
  memory_.clear();
}

void DeviceBed::copy_in(void* to, const void* from, std::size_t bytes) {
  device_->copy(to, from, bytes, stream_);
  device_->synchronize(stream_);
}

// Starts in another place of the pattern each time, so that no two buffers are equal.
void DeviceBed::repeat(void* to, const void* pattern, std::int64_t bytes) {
  const std::int64_t pattern_bytes = kPatternNumbers * (pattern == bf16_pattern_ ? 2 : 4);
  std::int64_t at = next_part_++ * kPatternStep % pattern_bytes;
  for (std::int64_t done = 0; done < bytes; at = 0) {
    const std::int64_t part = std::min(bytes - done, pattern_bytes - at);
    device_->copy(static_cast<std::uint8_t*>(to) + done,
                  static_cast<const std::uint8_t*>(pattern) + at, static_cast<std::size_t>(part),
                  stream_);
    done += part;
  }
}

std::uint16_t* DeviceBed::bf16(std::int64_t count) {
  auto* const memory = room<std::uint16_t>(count);
  repeat(memory, bf16_pattern_, count * 2);
  return memory;
}

float* DeviceBed::fp32(std::int64_t count) {
  auto* const memory = room<float>(count);
  repeat(memory, fp32_pattern_, count * 4);
  return memory;
}

device::GraphExec DeviceBed::capture(const std::string& what,
                                     const std::vector<DeviceLaunch>& launches,
                                     std::size_t rounds) {
  device_->begin_capture(stream_);
  plumb_status status = PLUMB_OK;
  for (std::size_t i = 0; i < rounds * launches.size() && status == PLUMB_OK; ++i) {
    status = launches[i % launches.size()](stream_);
  }
  const device::Graph graph = device_->end_capture(stream_);
  if (status != PLUMB_OK) throw std::runtime_error(what + ": cannot be captured");
  const device::GraphExec executable = device_->instantiate(graph);
  device_->destroy_graph(graph);
  return executable;
}

double DeviceBed::replay_seconds(device::GraphExec graph) {
  device_->record(before_, stream_);
  device_->replay(graph, stream_);
  device_->record(after_, stream_);
  device_->synchronize_event(after_);
  return device_->elapsed_seconds(before_, after_);
}

std::vector<double> DeviceBed::seconds(const std::string& what,
                                       const std::vector<DeviceLaunch>& launches) {
  for (const DeviceLaunch& launch : launches) {  // loads the kernels; plans, where an op does
    const plumb_status status = launch(stream_);
    if (status != PLUMB_OK) {
      throw std::runtime_error(fmt::format("{}: status {} {}", what, static_cast<int>(status),
                                           device_->take_launch_error()));
    }
  }
  device_->synchronize(stream_);
  device::GraphExec graph = capture(what, launches, 1);
  const double once = std::min(replay_seconds(graph), replay_seconds(graph));
  device_->destroy_graph_exec(graph);
  const auto rounds = static_cast<std::size_t>(std::ceil(kLongEnough / std::max(once, 1e-6)));
  graph = capture(what, launches, rounds);
  std::vector<double> seconds;
  for (int repetition = -2; repetition < kRepetitions; ++repetition) {
    const double spent = replay_seconds(graph);
    if (repetition >= 0) {
      seconds.push_back(spent / static_cast<double>(rounds * launches.size()));
    }
  }
  device_->destroy_graph_exec(graph);
  return seconds;
}

}  // namespace plumb::tools
