// SPDX-License-Identifier: Apache-2.0
//
// The judge against planted faults and right variants of an attention kernel. Comparators of other
// projects were measured with the same fifteen faults; the weakest of them finds none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "cases/judge/judge.h"
#include "tests/support/decode.h"

namespace plumb::tests {
namespace judge_faults_test {

using cases::HostTensor;
using Out = std::vector<float>;

constexpr DecodeShape kShape{.tokens = 4, .heads = 64, .width = 512, .keys = 640, .key_width = 64};
constexpr int kSeeds = 20;

struct Fault {
  std::string name;
  HostTensor (*plant)(const Decode& decode, const Out& honest);
  std::vector<std::int64_t> rows = {};  // rows that the report must name, and no others; empty: any
};

// Index of the element with this rank by magnitude.
std::size_t ranked(const Out& out, std::size_t rank) {
  std::vector<std::size_t> order(out.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = order.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(order.begin(), at, order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(out[a]) < std::abs(out[b]);
  });
  return *at;
}

HostTensor with_element(const Decode& decode, Out out, std::size_t i, float value) {
  out[i] = value;
  return store(decode.shape, out);
}

HostTensor scaled(const Decode& decode, Out out, float factor) {
  for (float& x : out) x *= factor;
  return store(decode.shape, out);
}

HostTensor from_kernel(const Decode& decode, const auto& change) {
  Kernel kernel = honest_kernel(decode.shape);
  change(kernel);
  return store(decode.shape, run(kernel, decode));
}

const std::vector<Fault> kFaults = {
    {"median element zero",
     [](const Decode& decode, const Out& honest) {
       return with_element(decode, honest, ranked(honest, honest.size() / 2), 0);
     }},
    {"largest element zero",
     [](const Decode& decode, const Out& honest) {
       return with_element(decode, honest, ranked(honest, honest.size() - 1), 0);
     }},
    {"median element doubled",
     [](const Decode& decode, const Out& honest) {
       const std::size_t i = ranked(honest, honest.size() / 2);
       return with_element(decode, honest, i, 2 * honest[i]);
     }},
    {"last 8 elements never written",
     [](const Decode& decode, const Out& honest) {
       Out out = honest;
       std::fill(out.end() - 8, out.end(), 0.0f);
       return store(decode.shape, out);
     },
     {255}},
    {"one head of one token zero",
     [](const Decode& decode, const Out& honest) {
       Out out = honest;
       const auto row = out.begin() + 70 * decode.shape.width;
       std::fill(row, row + decode.shape.width, 0.0f);
       return store(decode.shape, out);
     },
     {70}},
    {"two heads of one token swapped",
     [](const Decode& decode, const Out& honest) {
       Out out = honest;
       const auto row = out.begin() + 70 * decode.shape.width;
       std::swap_ranges(row, row + decode.shape.width, row + decode.shape.width);
       return store(decode.shape, out);
     },
     {70, 71}},
    {"all times 1.01",
     [](const Decode& decode, const Out& honest) { return scaled(decode, honest, 1.01f); }},
    {"all times 1.003",
     [](const Decode& decode, const Out& honest) { return scaled(decode, honest, 1.003f); }},
    {"one key skipped",
     [](const Decode& decode, const Out&) {
       return from_kernel(
           decode, [](Kernel& kernel) { kernel.splits[0].erase(kernel.splits[0].begin() + 300); });
     }},
    {"one key replaced by another",
     [](const Decode& decode, const Out&) {
       return from_kernel(decode, [](Kernel& kernel) { kernel.splits[0][300] = 17; });
     }},
    {"softmax scale 2 % too large",
     [](const Decode& decode, const Out&) {
       return from_kernel(decode, [](Kernel& kernel) { kernel.scale_factor = 1.02; });
     }},
    {"p with a significand of 3 bits",
     [](const Decode& decode, const Out&) {
       return from_kernel(decode, [](Kernel& kernel) { kernel.round_probability = to_three_bits; });
     }},
    {"output truncated",
     [](const Decode& decode, const Out& honest) {
       return store(decode.shape, honest, to_bf16_truncated);
     }},
    {"accumulation in bf16",
     [](const Decode& decode, const Out&) {
       return from_kernel(decode, [](Kernel& kernel) { kernel.accumulate = accumulate_bf16; });
     }},
    {"one NaN",
     [](const Decode& decode, const Out& honest) {
       return with_element(decode, honest, honest.size() / 3,
                           std::numeric_limits<float>::quiet_NaN());
     }},
};

cases::TensorReport judge(const Decode& decode, const reference::Estimate& estimate,
                          const HostTensor& got) {
  return cases::judge_floats(got, estimate, {},
                             cases::groups_of(decode.shape.rows(), decode.shape.heads, "token"));
}

TEST(JudgeFaults, EveryPlantedFaultIsFound) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Decode decode = make_decode(kShape, Values::independent, seed);
    const reference::Estimate estimate = estimate_decode(decode);
    const Out honest = run(honest_kernel(kShape), decode);
    const auto healthy = judge(decode, estimate, store(kShape, honest));
    EXPECT_TRUE(healthy.passed()) << healthy.failures[0];
    for (const Fault& fault : kFaults) {
      const auto report = judge(decode, estimate, fault.plant(decode, honest));
      EXPECT_FALSE(report.passed()) << fault.name << ", seed " << seed;
      if (!fault.rows.empty()) {
        EXPECT_EQ(report.wrong_rows, fault.rows) << fault.name << ", seed " << seed;
      }
    }
  }
}

struct Control {
  std::string name;
  void (*change)(Kernel& kernel);
};

const std::vector<Control> kControls = {
    {"p in bf16", [](Kernel&) {}},
    {"p in fp32", [](Kernel& kernel) { kernel.round_probability = unrounded; }},
    {"reversed order",
     [](Kernel& kernel) { std::reverse(kernel.splits[0].begin(), kernel.splits[0].end()); }},
    {"split in 4",
     [](Kernel& kernel) {
       const std::vector<int> keys = kernel.splits[0];
       kernel.splits.assign(4, {});
       for (std::size_t i = 0; i < keys.size(); ++i) {
         kernel.splits[i * 4 / keys.size()].push_back(keys[i]);
       }
     }},
};

class HealthyKernels : public testing::TestWithParam<Values> {};

TEST_P(HealthyKernels, RaiseNoFalseAlarmInAThousandSeeds) {
  constexpr DecodeShape kSmall{.tokens = 2, .heads = 8, .width = 64, .keys = 96, .key_width = 16};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Decode decode = make_decode(kSmall, GetParam(), 1000 + seed);
    const reference::Estimate estimate = estimate_decode(decode);
    for (const Control& control : kControls) {
      Kernel kernel = honest_kernel(kSmall);
      control.change(kernel);
      const auto report = judge(decode, estimate, store(kSmall, run(kernel, decode)));
      EXPECT_TRUE(report.passed())
          << control.name << ", seed " << seed << ": " << report.failures[0];
    }
  }
}

std::string name_of_values(const testing::TestParamInfo<Values>& values) {
  switch (values.param) {
    case Values::independent: return "v_independent";
    case Values::shared: return "v_shared_over_d";
    case Values::near_one: return "v_near_one";
  }
  return "?";
}
INSTANTIATE_TEST_SUITE_P(, HealthyKernels,
                         testing::Values(Values::independent, Values::shared, Values::near_one),
                         name_of_values);

}  // namespace judge_faults_test
}  // namespace plumb::tests
