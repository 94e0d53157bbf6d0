// SPDX-License-Identifier: Apache-2.0
//
// Tests the bounds of the router ops: correct fp32 arithmetic, in both usual forms of each score
// and several orders of the sum, never exceeds them, and comes near enough that a small error would
// exceed them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "cases/judge/judge_choices.h"
#include "reference/formats/bfloat16.h"
#include "reference/router/grouped_topk.h"
#include "reference/router/sqrt_softplus_topk.h"
#include "tests/support/random.h"

namespace plumb::tests {
namespace router_bound_test {

using namespace reference;
using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kTokens = 16, kExperts = 256;
constexpr int kSeeds = 24;
constexpr Numerics kNumerics{.chains = 32, .function_ulp = 0.5};

// fp32 functions with an error of at most half an ulp.
float exp_f32(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }
float log_f32(float x) { return static_cast<float>(std::log(static_cast<double>(x))); }
float root_f32(float x) { return static_cast<float>(std::sqrt(static_cast<double>(x))); }
float round_bf16(float x) { return static_cast<float>(decode_bf16(encode_bf16(x))); }

struct Form {
  std::string name;
  float (*score)(float);
  SoftplusRules rules = {};
  bool rounds_tanh = false;
};

const std::vector<Form> kSigmoids = {
    {"1 / (1 + exp)", [](float x) { return 1.0F / (1.0F + exp_f32(-x)); }},
    {"tanh",
     [](float x) {
       return 0.5F * static_cast<float>(std::tanh(0.5 * static_cast<double>(x))) + 0.5F;
     }},
};

// The score with tanh rounded to bf16, before the score itself is rounded.
const Form kTanhInBf16{.name = "tanh in bf16",
                       .score =
                           [](float x) {
                             const auto tanh =
                                 static_cast<float>(std::tanh(0.5 * static_cast<double>(x)));
                             return 0.5F * round_bf16(tanh) + 0.5F;
                           },
                       .rounds_tanh = true};

const std::vector<Form> kRoots = {
    {"log(1 + exp)", [](float x) { return root_f32(x > 20.0F ? x : log_f32(1.0F + exp_f32(x))); }},
    {"log1p",
     [](float x) { return root_f32(x > 20.0F ? x : static_cast<float>(std::log1p(exp_f32(x)))); },
     {.log1p = true}},
    {"log1p without a linear branch",
     [](float x) { return root_f32(static_cast<float>(std::log1p(exp_f32(x)))); },
     {.linear_above_20 = false, .log1p = true}},
    {"x * rsqrt",
     [](float x) {
       const float sp = x > 20.0F ? x : log_f32(1.0F + exp_f32(x));
       return sp > 0 ? sp * static_cast<float>(1 / std::sqrt(static_cast<double>(sp))) : 0.0F;
     }},
};

struct Data {
  std::vector<float> logits, bias;
  Data(std::uint64_t seed, double scale, double mean, double bias_scale) {
    Random random(seed);
    for (std::int64_t i = 0; i < kTokens * kExperts; ++i) {
      logits.push_back(static_cast<float>(mean + scale * random.normal()));
    }
    for (std::int64_t e = 0; e < kExperts; ++e) {
      bias.push_back(static_cast<float>(bias_scale * random.normal()));
    }
  }
  Logits view() const { return {logits.data(), false, kTokens, kExperts, kExperts}; }
};

// Ids of the k best of `choice`, descending; ties go to the smaller id.
Ids best(const std::vector<float>& choice, std::int64_t k) {
  Ids ids(choice.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  std::sort(ids.begin(), ids.end(),
            [&](auto a, auto b) { return choice[a] != choice[b] ? choice[a] > choice[b] : a < b; });
  ids.resize(static_cast<std::size_t>(k));
  return ids;
}

// One row of a correct kernel: choices in fp32 or rounded to bf16, groups, and weights with a sum
// in either order.
struct Honest {
  float (*score)(float);
  bool to_bf16 = false, reversed = false;
  std::int64_t groups = 1, kept = 1, k = 6;
  float offset = 0;  // added to the sum

  float round(float x) const { return to_bf16 ? round_bf16(x) : x; }

  Ids choose(const float* logits, const float* bias) const {
    std::vector<float> choice(kExperts), group(static_cast<std::size_t>(groups));
    for (std::int64_t e = 0; e < kExperts; ++e) {
      choice[e] = round(round(score(logits[e])) + round(bias[e]));
    }
    const std::int64_t width = kExperts / groups;
    for (std::int64_t g = 0; g < groups; ++g) {
      std::vector<float> members(choice.begin() + g * width, choice.begin() + (g + 1) * width);
      std::sort(members.begin(), members.end(), std::greater<>());
      group[g] = round(members[0] + members[1]);
    }
    const Ids open = best(group, kept);
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const auto own = static_cast<std::int32_t>(e / width);
      if (std::find(open.begin(), open.end(), own) == open.end()) choice[e] = -INFINITY;
    }
    return best(choice, k);
  }

  std::vector<float> weigh(const float* logits, const Ids& ids, float scale) const {
    std::vector<float> weights;
    for (const std::int32_t id : ids) weights.push_back(round(score(logits[id])));
    float sum = reversed ? 0 : offset;
    for (std::int64_t i = 0; i < k; ++i) sum += weights[reversed ? k - 1 - i : i];
    if (reversed) sum += offset;
    const float divisor = sum > 0 ? sum : 1;
    for (float& w : weights) w = reversed ? w * (scale / divisor) : w / divisor * scale;
    return weights;
  }
};

// Collects error / bound over many launches.
class Margins {
 public:
  void add(const Estimate& expected, const std::vector<float>& got) {
    for (std::int64_t row = 0; row < expected.rows; ++row) {
      double largest = 0;
      for (std::int64_t i = row * expected.columns; i < (row + 1) * expected.columns; ++i) {
        const double error = std::abs(static_cast<double>(got[i]) - expected.centre(i));
        const double bound = expected.bound(i);
        exceeded_ += !(error <= bound);
        largest = std::max(largest, error / bound);
        if (error > 0.1 * kUnitF32 * std::abs(expected.value[i])) ratios_.push_back(bound / error);
      }
      rows_.push_back(largest);
    }
  }
  void expect_honest(const std::string& what) const { EXPECT_EQ(exceeded_, 0) << what; }
  void expect_tight(const std::string& what) {
    ASSERT_GE(ratios_.size(), 1000U) << what;
    EXPECT_LE(quantile(ratios_, 0.5), 16) << what << ": median bound / error";
    EXPECT_GE(quantile(rows_, 0.95), 0.1) << what << ": rows' largest error / bound";
  }

 private:
  static double quantile(std::vector<double>& values, double q) {
    const auto at =
        values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }
  std::vector<double> ratios_, rows_;
  int exceeded_ = 0;
};

void expect_selected(const Ids& ids, const ScoredChoices& choices, const std::string& what) {
  cases::HostTensor tensor(
      {.name = "ids", .dtype = cases::Dtype::i32, .shape = {kTokens, choices.k}});
  std::copy(ids.begin(), ids.end(), tensor.data<std::int32_t>());
  const cases::TensorReport report = cases::judge_choices(tensor, choices);
  EXPECT_TRUE(report.passed()) << what << ": " << (report.passed() ? "" : report.failures.front());
}

struct Launch {
  Ids ids;
  std::vector<float> weights;
};

Launch run(const Honest& honest, const Data& data, float scale) {
  Launch launch;
  for (std::int64_t token = 0; token < kTokens; ++token) {
    const float* logits = data.logits.data() + token * kExperts;
    const Ids ids = honest.choose(logits, data.bias.data());
    const auto weights = honest.weigh(logits, ids, scale);
    launch.ids.insert(launch.ids.end(), ids.begin(), ids.end());
    launch.weights.insert(launch.weights.end(), weights.begin(), weights.end());
  }
  return launch;
}

// Weights and selections of one form of the score over many seeds.
Margins grouped_margins(const Form& form, double scale, double mean, double bias) {
  Margins margins;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Data data(static_cast<std::uint64_t>(seed), scale, mean, bias);
    GroupedTopK inputs{data.view(), data.bias.data(), 8, 4, 8, false, true, 2.5};
    const auto choices = grouped_topk_choices(inputs, kNumerics);
    const Honest honest{form.score, false, seed % 2 == 1, 8, 4, 8, 1e-20F};
    const Launch launch = run(honest, data, 2.5F);
    expect_selected(launch.ids, choices, form.name);
    margins.add(grouped_topk_weights(inputs, choices, launch.ids.data(), kNumerics),
                launch.weights);
  }
  return margins;
}

Margins softplus_margins(const Form& form, double scale, double mean, double bias) {
  Margins margins;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Data data(static_cast<std::uint64_t>(seed), scale, mean, bias);
    SqrtSoftplusTopK inputs{data.view(), data.bias.data(), nullptr, 6, false, true, 1.5};
    inputs.rules = form.rules;
    const auto choices = sqrt_softplus_topk_choices(inputs, kNumerics);
    const Honest honest{form.score, false, seed % 2 == 1};
    const Launch launch = run(honest, data, 1.5F);
    expect_selected(launch.ids, choices, form.name);
    margins.add(sqrt_softplus_topk_weights(inputs, launch.ids.data(), kNumerics), launch.weights);
  }
  return margins;
}

TEST(RouterBounds, HoldForEveryFormOfTheSigmoid) {
  for (const Form& form : kSigmoids) {
    Margins usual = grouped_margins(form, 1.5, 0, 0.1);
    usual.expect_honest(form.name);
    usual.expect_tight(form.name);
    grouped_margins(form, 8, 0, 0.01).expect_honest(form.name + ", saturated");
    grouped_margins(form, 3, -20, 0.5).expect_honest(form.name + ", small scores");
    grouped_margins(form, 2, 0, 300).expect_honest(form.name + ", large bias");
    grouped_margins(form, 1e-3, 0, 1e-6).expect_honest(form.name + ", near ties");
  }
}

TEST(RouterBounds, HoldForEveryFormOfTheRoot) {
  for (const Form& form : kRoots) {
    Margins usual = softplus_margins(form, 1.5, 0, 0.1);
    usual.expect_honest(form.name);
    usual.expect_tight(form.name);
    softplus_margins(form, 24, 0, 1).expect_honest(form.name + ", large logits");
    softplus_margins(form, 4, -16, 0.3).expect_honest(form.name + ", vanishing scores");
    softplus_margins(form, 2, 0, 300).expect_honest(form.name + ", large bias");
    softplus_margins(form, 1e-4, 0, 1e-6).expect_honest(form.name + ", near ties");
  }
}

TEST(RouterBounds, HoldWhereScoresAreRoundedToBf16) {
  std::vector<Form> forms = kSigmoids;
  forms.push_back(kTanhInBf16);
  for (const Form& form : forms) {
    for (int seed = 0; seed < kSeeds; ++seed) {
      const Data data(static_cast<std::uint64_t>(seed), 1.5, 0, 0.1);
      std::vector<std::uint16_t> bits;
      Data rounded = data;
      for (float& x : rounded.logits) {
        bits.push_back(encode_bf16(x));
        x = static_cast<float>(decode_bf16(bits.back()));
      }
      GroupedTopK inputs{{bits.data(), true, kTokens, kExperts, kExperts},
                         data.bias.data(),
                         8,
                         4,
                         8,
                         true,
                         true,
                         2.5};
      inputs.tanh_in_logits_format = form.rounds_tanh;
      const auto choices = grouped_topk_choices(inputs, kNumerics);
      const Honest honest{form.score, true, seed % 2 == 1, 8, 4, 8, 1e-20F};
      const Launch launch = run(honest, rounded, 2.5F);
      expect_selected(launch.ids, choices, form.name + " in bf16");
      Margins margins;
      margins.add(grouped_topk_weights(inputs, choices, launch.ids.data(), kNumerics),
                  launch.weights);
      margins.expect_honest(form.name + " in bf16");
    }
  }
}

// A row with a NaN logit may choose any experts, but its ids must be in [0, experts).
TEST(RouterBounds, AFreeRowHoldsExpertsAndNothingElse) {
  Data data(3, 1.5, 0, 0.1);
  data.logits[5] = std::nanf("");
  GroupedTopK inputs{data.view(), data.bias.data(), 8, 4, 8, false, true, 2.5};
  const auto choices = grouped_topk_choices(inputs, kNumerics);
  Launch launch = run({kSigmoids[0].score, false, false, 8, 4, 8}, data, 2.5F);
  std::fill_n(launch.ids.begin(), 8, 0);
  expect_selected(launch.ids, choices, "repeated");
  launch.ids[3] = static_cast<std::int32_t>(kExperts);
  cases::HostTensor tensor(
      {.name = "ids", .dtype = cases::Dtype::i32, .shape = {kTokens, choices.k}});
  std::copy(launch.ids.begin(), launch.ids.end(), tensor.data<std::int32_t>());
  EXPECT_EQ(cases::judge_choices(tensor, choices).wrong_rows, (std::vector<std::int64_t>{0}));
}

TEST(RouterBounds, NoticeAWeightThatIsTenPerMillionWrong) {
  const Data data(7, 1.5, 0, 0.1);
  SqrtSoftplusTopK inputs{data.view(), data.bias.data(), nullptr, 6, false, true, 1.5};
  const Honest honest{kRoots[0].score};
  Launch launch = run(honest, data, 1.5F);
  launch.weights[20] *= 1.00001F;
  const Estimate expected = sqrt_softplus_topk_weights(inputs, launch.ids.data(), kNumerics);
  EXPECT_GT(std::abs(static_cast<double>(launch.weights[20]) - expected.value[20]),
            expected.bound(20));
}

}  // namespace router_bound_test
}  // namespace plumb::tests
