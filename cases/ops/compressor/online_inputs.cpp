// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/compressor/online_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cases/tensors/fill.h"
#include "reference/compressor/compress_norm_rope_insert.h"

namespace plumb::cases {

namespace {

enum OnlineSalt : std::uint64_t { kOnlineKv = 61, kOnlineScores, kOnlineKinds, kOnlineApe };

constexpr std::uint64_t kOnlineKindCount = 6;

double ape_number(const Step& step, std::uint64_t seed, std::uint64_t at) {
  switch (step.fill) {
    case Fill::exact: return static_cast<double>(integer(seed, at, -4, 4));
    // Multiples of 1/8, so that scores can be equal after ape is added.
    case Fill::adversarial: return static_cast<double>(integer(seed, at, -32, 32)) / 8;
    default: return normal(seed, at);
  }
}

}  // namespace

void add_online_states(TablePart<plumb_online_states>& states, const Formula& rows,
                       const Formula& head_dim, const std::string& far) {
  using S = plumb_online_states;
  const Formula width = reference::kOnlineParts * head_dim;
  if (far.empty()) states.scalar("rows", &S::rows, rows);
  if (!far.empty()) {
    const Formula numbered = computed("rows", [=](const FormulaValues& values) {
      const std::int64_t stride = width.value(values) + values.row->integer("out_gap");
      const bool is_far = values.row->integer(far) != 0;
      return BlockNumbering{rows.value(values), stride, is_far}.num_blocks();
    });
    states.scalar("rows", &S::rows, in_call(numbered, parameter("state_rows")));
  }
  states.in_place("data", &S::data, {rows, width}, "largest scores, sums of weights, means of kv")
      .named("states");
  states.strides({{"row_stride", &S::row_stride}});
}

std::vector<Parameter> online_token_parameters() {
  return {{"head_dim", 64, 1, 65536, "channels"},
          {"kv_gap", 0, 0, 65536, "elements between two rows of kv, guarded"},
          {"score_gap", 0, 0, 65536, "elements between two rows of score, guarded"},
          kOutGap};
}

void OnlineInputs::fill_ape(HostTensor& ape) const {
  const std::uint64_t seed = mix(step_.seed, kOnlineApe);
  for (std::int64_t i = 0; i < ape.elements(); ++i) {
    ape.data<float>()[i] =
        static_cast<float>(ape_number(step_, seed, static_cast<std::uint64_t>(i)));
  }
}

std::uint64_t OnlineInputs::kind(const OnlineRequest& request) const {
  const auto number = static_cast<std::uint64_t>(request.number);
  return (random_bits(mix(step_.seed, kOnlineKinds), 0) + number) % kOnlineKindCount;
}

bool OnlineInputs::is_reset(std::int64_t request) const {
  const auto first = static_cast<std::int64_t>(mix(step_.seed, kOnlineKinds) % 3);
  return step_.fill == Fill::adversarial && request % 3 == first;
}

double OnlineInputs::kv(const OnlineRequest& request, std::int64_t position,
                        std::int64_t channel) const {
  const auto number = static_cast<std::uint64_t>(request.number);
  const std::uint64_t seed = mix(mix(step_.seed, kOnlineKv), number);
  const auto at = static_cast<std::uint64_t>(position * head_dim_ + channel);
  if (step_.fill == Fill::exact) return random_bits(seed, at) % 2 ? 1 : -1;
  const double value = normal(seed, at);
  if (step_.fill == Fill::adversarial && kind(request) == 4) return 1e-6 * value;
  // Values at even and at odd positions cancel, except for a small rest.
  if (step_.fill == Fill::adversarial && kind(request) == 5) {
    return (position % 2 ? 1000.0 : -1000.0) + value;
  }
  const double of_request = std::ldexp(1.0, static_cast<int>(number % 9) - 4);
  return of_request * (random_bits(seed, ~at) % 64 == 0 ? 20 : 1) * value;
}

double OnlineInputs::score(const OnlineRequest& request, std::int64_t position,
                           std::int64_t channel, double bias) const {
  const std::int64_t phase = position % reference::kOnlineGroup;
  // Scores of a group are 64 apart, so that one position has all the weight.
  if (step_.fill == Fill::exact) {
    return 64.0 * static_cast<double>((phase + 3 * channel) % reference::kOnlineGroup);
  }
  const std::uint64_t seed =
      mix(mix(step_.seed, kOnlineScores), static_cast<std::uint64_t>(request.number));
  const auto at = static_cast<std::uint64_t>(position * head_dim_ + channel);
  const double value = 2 * normal(seed, at);
  if (step_.fill == Fill::real) return value;
  // The first score of a state is finite.
  const bool first = phase == 0 || (request.fresh && position == request.position);
  switch (kind(request)) {
    case 0: return random_bits(seed, at) % 2 ? 1e4 : -1e4;
    case 1: return 3 - bias;
    case 2: return value + ((phase + channel) % 16 == 5 ? 50 : 0);
    case 3: return (phase + channel) % 3 == 1 && !first ? -INFINITY : value;
    case 5: return 1 - bias;
    default: return value;
  }
}

void OnlineInputs::fill_tokens(const OnlineRequest& request, std::int64_t first_token,
                               std::int64_t tokens, TensorSet& tensors) const {
  const HostTensor& ape = tensors.at("ape");
  for (std::int64_t i = 0; i < tokens; ++i) {
    const std::int64_t position = request.position + i;
    const auto* bias = ape.row<float>(position % reference::kOnlineGroup);
    auto* const to_kv = tensors.at("kv").row<float>(first_token + i);
    auto* const to_score = tensors.at("score").row<float>(first_token + i);
    for (std::int64_t d = 0; d < head_dim_; ++d) {
      to_kv[d] = static_cast<float>(kv(request, position, d));
      to_score[d] = static_cast<float>(score(request, position, d, double{bias[d]}));
    }
  }
}

void OnlineInputs::write_state(const OnlineRequest& request, const HostTensor& ape,
                               float* to) const {
  const std::int64_t count = request.fresh ? 0 : request.position % reference::kOnlineGroup;
  for (std::int64_t d = 0; d < head_dim_; ++d) {
    std::vector<double> scores, kvs;
    for (std::int64_t phase = 0; phase < count; ++phase) {
      const std::int64_t position = request.position - count + phase;
      const double bias = ape.value(phase, d);
      scores.push_back(score(request, position, d, bias) + bias);
      kvs.push_back(kv(request, position, d));
    }
    const double largest =
        scores.empty() ? -INFINITY : *std::max_element(scores.begin(), scores.end());
    double sum = 0, weighted = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double weight = std::exp(scores[i] - largest);
      sum += weight;
      weighted += weight * kvs[i];
    }
    to[d] = static_cast<float>(largest);
    to[head_dim_ + d] = static_cast<float>(sum);
    to[2 * head_dim_ + d] = static_cast<float>(count == 0 ? 0 : weighted / sum);
  }
}

reference::OnlineTokens online_tokens(const TensorSet& tensors, std::int64_t head_dim) {
  const auto stride = [&](const HostTensor& rows) {
    return rows.spec().strides.empty() ? head_dim : rows.spec().strides.front();
  };
  const HostTensor &kv = tensors.at("kv"), &score = tensors.at("score");
  return {.kv = kv.data<float>(),
          .score = score.data<float>(),
          .ape = tensors.at("ape").data<float>(),
          .head_dim = head_dim,
          .kv_row_stride = stride(kv),
          .score_row_stride = stride(score)};
}

StoredOnlineStates::StoredOnlineStates(const TensorSet& tensors, std::int64_t head_dim,
                                       std::vector<std::int64_t> written)
    : before_(tensors.at("states_before")),
      states_(tensors.at("states")),
      head_dim_(head_dim),
      written_(std::move(written)) {}

HostTensor StoredOnlineStates::part(const std::string& name, std::int64_t part) const {
  TensorSpec spec{.name = name, .dtype = Dtype::f32, .shape = {std::ssize(written_), head_dim_}};
  const std::int64_t stride = states_.rows() > 1 ? states_.row_offset(1) : 0;
  const auto bit = [=, first = part * head_dim_, rows = written_](std::int64_t row,
                                                                  std::int64_t column) {
    const std::int64_t at = std::max<std::int64_t>(rows[static_cast<std::size_t>(row)], 0);
    return 32 * (at * stride + first + column);
  };
  spec.origin = std::make_shared<const Origin>(Origin{states_.spec().name, bit});
  HostTensor tensor(std::move(spec));
  for (std::int64_t i = 0; i < std::ssize(written_); ++i) {
    if (written_[i] < 0) continue;
    const auto* from = states_.row<float>(written_[i]) + part * head_dim_;
    std::copy_n(from, head_dim_, tensor.row<float>(i));
  }
  return tensor;
}

Expectations StoredOnlineStates::expect(const reference::OnlineStates& states, bool structured,
                                        std::int64_t rows_per_group) const {
  RowMask stored;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < std::ssize(written_); ++i) {
    stored.push_back(written_[i] >= 0);
    if (written_[i] >= 0) places.push_back(i);
  }
  HostTensor scores = part("states.max", 0);
  HostTensor right = scores;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto from = states.largest.begin() + static_cast<std::int64_t>(i) * head_dim_;
    std::transform(from, from + head_dim_, right.row<float>(places[i]),
                   [](double largest) { return static_cast<float>(largest); });
  }
  const std::int64_t rows = std::ssize(written_);
  const auto groups = groups_of(rows, rows_per_group, "states");
  const auto floats = [&](const HostTensor& tensor, const reference::Estimate& estimate) {
    reference::Estimate all = placed_states(estimate, places, rows);
    all.structured = structured;
    return expect_floats(tensor, std::move(all), stored, groups);
  };
  return {expect_bits(scores, std::move(right), stored, "differs from the largest score"),
          floats(part("states.sum", 1), states.sum), floats(part("states.kv", 2), states.mean)};
}

Expectation StoredOnlineStates::expect_rest() const {
  HostTensor expected = before_;
  for (const std::int64_t row : written_) {
    if (row < 0) continue;
    const auto* from = states_.row<float>(row);
    std::copy_n(from, reference::kOnlineParts * head_dim_, expected.row<float>(row));
  }
  return expect_bits(states_, std::move(expected), {}, "a row that no request owns changed");
}

}  // namespace plumb::cases
