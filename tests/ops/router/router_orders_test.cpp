// SPDX-License-Identifier: Apache-2.0
//
// Tests bounds that follow from the routers' formulas: fp32 arithmetic with functions within 2 ulp
// stays inside for every order of the sum. The median bound is at most twice the bound derived by
// hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/router/grouped_topk.h"
#include "reference/router/sqrt_softplus_topk.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace router_orders_test {

constexpr std::int64_t kTokens = 2, kExperts = 64;
constexpr int kSeeds = 1000;
constexpr float kScale = 2.5F;
const Numerics kTwoUlp{.chains = 32, .function_ulp = 2};

// fp32 arithmetic whose functions have random errors of up to 2 ulp.
class Fp32 {
 public:
  explicit Fp32(tests::Random& random) : random_(&random) {}

  float exp(float x) { return within_2_ulp(std::exp(static_cast<double>(x))); }
  float log(float x) { return x == 1 ? 0 : within_2_ulp(std::log(static_cast<double>(x))); }
  float sqrt(float x) { return within_2_ulp(std::sqrt(static_cast<double>(x))); }
  float divide(float x, float y) { return within_2_ulp(static_cast<double>(x) / y); }

 private:
  // 3 roundoffs are 1.5 ulp; the rounding to fp32 adds half an ulp.
  float within_2_ulp(double value) {
    return static_cast<float>(value * (1 + 3 * kUnitF32 * (2 * random_->uniform() - 1)));
  }
  tests::Random* random_;
};

enum class Order { forward, backward, tree };
constexpr Order kOrders[] = {Order::forward, Order::backward, Order::tree};

float sum_of(std::vector<float> terms, Order order) {
  if (order == Order::backward) std::ranges::reverse(terms);
  if (order != Order::tree) {
    float sum = 0;
    for (const float x : terms) sum += x;
    return sum;
  }
  for (std::size_t left = terms.size(); left > 1; left = (left + 1) / 2) {
    for (std::size_t i = 0; i < left / 2; ++i) terms[i] += terms[i + (left + 1) / 2];
  }
  return terms[0];
}

// Weights of one row. `wrong`: make the sum 64 ulp too large.
std::vector<float> weights_of(const std::vector<float>& scores, Order order, bool wrong,
                              Fp32& fp32) {
  float sum = sum_of(scores, order);
  if (wrong) sum *= 1 + 0x1p-17F;
  std::vector<float> weights;
  for (const float s : scores) weights.push_back(fp32.divide(s, sum) * kScale);
  return weights;
}

struct Inputs {
  std::vector<float> logits, bias;
  explicit Inputs(tests::Random& random) {
    for (std::int64_t i = 0; i < kTokens * kExperts; ++i) {
      logits.push_back(static_cast<float>(1.5 * random.normal()));
    }
    for (std::int64_t e = 0; e < kExperts; ++e) {
      bias.push_back(static_cast<float>(0.1 * random.normal()));
    }
  }
  Logits view() const { return {logits.data(), false, kTokens, kExperts, kExperts}; }
};

// sqrt_softplus_topk: the inputs of its reference, and its score in fp32.
struct SqrtSoftplus {
  SqrtSoftplusTopK inputs;
  explicit SqrtSoftplus(const Inputs& from) {
    inputs = {from.view(), from.bias.data(), nullptr, 6, false, true, kScale};
  }
  ScoredChoices choices() const { return sqrt_softplus_topk_choices(inputs, kTwoUlp); }
  Estimate weights(const ScoredChoices&, const std::vector<std::int32_t>& ids) const {
    return sqrt_softplus_topk_weights(inputs, ids.data(), kTwoUlp);
  }
  static float score(float x, Fp32& fp32) {
    return fp32.sqrt(x > 20 ? x : fp32.log(1 + fp32.exp(x)));
  }
};
struct Grouped {
  GroupedTopK inputs;
  explicit Grouped(const Inputs& from) {
    inputs = {from.view(), from.bias.data(), 8, 4, 8, false, true, kScale};
  }
  ScoredChoices choices() const { return grouped_topk_choices(inputs, kTwoUlp); }
  Estimate weights(const ScoredChoices& choices, const std::vector<std::int32_t>& ids) const {
    return grouped_topk_weights(inputs, choices, ids.data(), kTwoUlp);
  }
  static float score(float x, Fp32& fp32) { return fp32.divide(1, 1 + fp32.exp(-x)); }
};

// Numbers of results outside their bounds, and the bounds before the output rounding, relative to
// the values, in units of an fp32 rounding.
struct Tally {
  std::int64_t outside = 0, wrong_sums_outside = 0;
  std::vector<double> of_choices, of_groups, of_weights;
};

void add_bounds(const Estimate& estimate, std::vector<double>& bounds) {
  for (std::int64_t i = 0; i < std::ssize(estimate.value); ++i) {
    bounds.push_back(estimate.arithmetic(i) / std::abs(estimate.centre(i)) / kUnitF32);
  }
}

template <class Router>
void compare(const Router& router, const Inputs& inputs, Fp32& fp32, Tally& tally) {
  const ScoredChoices choices = router.choices();
  std::vector<std::int32_t> ids;
  for (std::int64_t token = 0; token < kTokens; ++token) {
    std::ranges::copy(choices.exact(token), std::back_inserter(ids));
  }
  const Estimate weights = router.weights(choices, ids);
  add_bounds(choices.experts.score, tally.of_choices);
  add_bounds(choices.group.score, tally.of_groups);
  add_bounds(weights, tally.of_weights);
  for (std::int64_t i = 0; i < kTokens * kExperts; ++i) {
    const float choice = Router::score(inputs.logits[i], fp32) + inputs.bias[i % kExperts];
    const double error = std::abs(double{choice} - choices.experts.score.value[i]);
    tally.outside += !(error <= choices.experts.score.arithmetic(i));
  }
  for (std::int64_t token = 0; token < kTokens; ++token) {
    std::vector<float> scores;
    for (std::int64_t k = 0; k < weights.columns; ++k) {
      const std::int32_t id = ids[token * weights.columns + k];
      scores.push_back(Router::score(inputs.logits[token * kExperts + id], fp32));
    }
    for (const Order order : kOrders) {
      const auto outside = [&](bool wrong) {
        const std::vector<float> got = weights_of(scores, order, wrong, fp32);
        std::int64_t count = 0;
        for (std::int64_t k = 0; k < weights.columns; ++k) {
          const std::int64_t i = token * weights.columns + k;
          count += !(std::abs(double{got[k]} - weights.centre(i)) <= weights.bound(i));
        }
        return count;
      };
      tally.outside += outside(false);
      tally.wrong_sums_outside += outside(true);
    }
  }
}

template <class Router>
Tally tally_of() {
  Tally tally;
  for (int seed = 0; seed < kSeeds; ++seed) {
    tests::Random random(static_cast<std::uint64_t>(seed) + 1);
    const Inputs inputs(random);
    Fp32 fp32(random);
    compare(Router(inputs), inputs, fp32, tally);
  }
  return tally;
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// `by_hand`: median of the bounds derived by hand for the same inputs.
void expect_no_wider(std::vector<double>& bounds, double by_hand, const std::string& what) {
  EXPECT_LE(median(bounds), 2 * by_hand) << what;
}

TEST(RouterOrders, SqrtSoftplusStaysInsideInEveryOrder) {
  Tally tally = tally_of<SqrtSoftplus>();
  EXPECT_EQ(tally.outside, 0);
  EXPECT_GT(tally.wrong_sums_outside, kSeeds * kTokens * 6 * 3 / 2);
  expect_no_wider(tally.of_choices, 12.55, "choices");
  expect_no_wider(tally.of_weights, 23.43, "weights");
}

TEST(RouterOrders, SigmoidsStayInsideInEveryOrder) {
  Tally tally = tally_of<Grouped>();
  EXPECT_EQ(tally.outside, 0);
  EXPECT_GT(tally.wrong_sums_outside, kSeeds * kTokens * 8 * 3 / 2);
  expect_no_wider(tally.of_choices, 9.65, "choices");
  expect_no_wider(tally.of_groups, 9.36, "groups");
  expect_no_wider(tally.of_weights, 21.39, "weights");
}

}  // namespace router_orders_test
}  // namespace plumb::reference
