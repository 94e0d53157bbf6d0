// SPDX-License-Identifier: Apache-2.0
#include "reference/compressor/compress_norm_rope_insert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "reference/formats/bfloat16.h"
#include "reference/norm/rope.h"
#include "reference/norm/row_norm.h"
#include "reference/tracked/other_forms.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

namespace {

// Numerics with the errors of an online softmax. Kernels with one multiply their sums by exp(old
// maximum - new maximum) at each position of the window. Each such factor has the error of an
// exponential, and two products round.
Numerics of_online_softmax(Numerics numerics, std::int64_t window) {
  numerics.function_ulp += static_cast<double>(window - 1) * (numerics.function_ulp + 1);
  numerics.chains = 1;  // worst case: kernels may split a window, or add in order
  return numerics;
}

// Channels computed at once, few enough for a core's cache.
constexpr std::int64_t kPooledChannels = 64;

// Several windows one after the other, each [window, kPooledChannels].
struct WindowValues {
  std::vector<double> kv, score, bias;
};

class WindowReader {
 public:
  explicit WindowReader(const CompressedStates& inputs) : inputs_(inputs) {}

  // Positions below 0 do not belong to the window. Their kv is 0, and their score is so far below
  // the largest one that its exponential is 0.
  void append(std::int64_t row, std::int64_t channel, WindowValues& values) const {
    const std::int64_t first = inputs_.positions[row] - inputs_.window() + 1;
    for (std::int64_t i = 0; i < inputs_.window(); ++i) {
      // With overlap, the closed group uses the second half of the channels, the group before it
      // the first half.
      const std::int64_t half = inputs_.overlap && i >= inputs_.ratio ? inputs_.head_dim : 0;
      append_position(row, first + i, half + channel, values);
    }
    bury_absent(values);
  }

 private:
  void append_position(std::int64_t row, std::int64_t position, std::int64_t column,
                       WindowValues& values) const {
    const std::int64_t width = inputs_.width();
    const std::uint8_t* state = position < 0 ? nullptr : inputs_.partial_state(row, position);
    const std::int64_t phase = position < 0 ? 0 : position % inputs_.ratio;
    for (std::int64_t d = column; d < column + kPooledChannels; ++d) {
      values.kv.push_back(state == nullptr ? 0 : element(state, d));
      values.score.push_back(state == nullptr ? -kInfinity : element(state, width + d));
      values.bias.push_back(inputs_.ape == nullptr ? 0 : inputs_.ape[phase * width + d]);
    }
  }

  double element(const std::uint8_t* state, std::int64_t i) const {
    if (inputs_.bf16) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, state + 2 * i, sizeof bits);
      return decode_bf16(bits);
    }
    float value = 0;
    std::memcpy(&value, state + 4 * i, sizeof value);
    return value;
  }

  // Sets the scores of absent positions (below 0) in the window that was appended last.
  void bury_absent(WindowValues& values) const {
    constexpr double kFarBelow = 1000;
    const std::int64_t count = inputs_.window() * kPooledChannels;
    const auto base = std::ssize(values.score) - count;
    double* const score = values.score.data() + base;
    const double* const bias = values.bias.data() + base;
    for (std::int64_t d = 0; d < kPooledChannels; ++d) {
      double largest = -kInfinity;
      for (std::int64_t at = d; at < count; at += kPooledChannels) {
        largest = std::max(largest, score[at] + bias[at]);
      }
      for (std::int64_t at = d; at < count; at += kPooledChannels) {
        if (score[at] == -kInfinity) score[at] = largest - bias[at] - kFarBelow;
      }
    }
  }

  const CompressedStates& inputs_;
};

// Mean of kv over the window, weighted by the softmax of each channel: [states, head_dim].
Estimate pooled(const CompressedStates& inputs, const Numerics& numerics) {
  const Numerics how = of_online_softmax(numerics, inputs.window());
  const std::int64_t parts = inputs.head_dim / kPooledChannels;
  const WindowReader reader(inputs);
  const auto means = [&](std::int64_t begin, std::int64_t end) {
    WindowValues values;
    for (std::int64_t part = begin; part < end; ++part) {
      reader.append(part / parts, part % parts * kPooledChannels, values);
    }
    const TrackedSizes sizes{end - begin, inputs.window(), kPooledChannels};
    Tracked score(std::move(values.score), sizes, how);
    if (inputs.ape != nullptr) {
      score = std::move(score) + Tracked(std::move(values.bias), sizes, how);
    }
    const bool every = inputs.rounding == CompressedRounding::every;
    if (every) score = rounded(std::move(score), Format::bf16);
    const Tracked largest = max(score, 1);
    const Tracked weights = exp_by_exp2(std::move(score) - largest);
    const Tracked kv(std::move(values.kv), sizes, how);
    const Tracked total = sum(weights, 1);
    Tracked mean = every
                       ? sum(rounded(rounded(weights / total, Format::bf16) * kv, Format::bf16), 1)
                       : sum(weights * kv, 1) / total;
    if (inputs.rounding != CompressedRounding::store) {
      mean = rounded(std::move(mean), Format::bf16);
    }
    return reshaped(std::move(mean), {end - begin, kPooledChannels});
  };
  constexpr std::int64_t kElementsOfBlock = 1 << 13;
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kElementsOfBlock / (inputs.window() * kPooledChannels));
  Estimate all =
      estimate_by_blocks(std::ssize(inputs.positions) * parts, at_once, Format::f32, means);
  // Each row of `all` is a part of kPooledChannels channels. Join the parts of a state into one
  // row.
  for (std::int64_t row = 0; row < std::ssize(inputs.positions); ++row) {
    double systematic = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      systematic += all.row_systematic[row * parts + part] / static_cast<double>(parts);
    }
    all.row_systematic[row] = systematic;
  }
  all.row_systematic.resize(inputs.positions.size());
  all.rows = std::ssize(inputs.positions);
  all.columns = inputs.head_dim;
  return all;
}

// Rows [begin, end) and the first `columns` of `states` as a tracked array with `numerics`.
Tracked with_numerics(const Estimate& states, std::int64_t begin, std::int64_t end,
                      std::int64_t columns, const Numerics& numerics) {
  Estimate part;
  part.resize(end - begin, columns);
  part.shift.assign(part.value.size(), 0);
  for (std::int64_t i = 0; i < (end - begin) * columns; ++i) {
    const std::int64_t from = (begin + i / columns) * states.columns + i % columns;
    part.value[i] = states.value[from];
    part.sigma[i] = states.sigma[from];
    part.worst[i] = states.worst[from];
    if (!states.shift.empty()) part.shift[i] = states.shift[from];
  }
  for (std::int64_t row = 0; row < end - begin; ++row) {
    part.row_systematic[row] = states.row_systematic[begin + row];
  }
  Tracked values(part.value, {end - begin, columns}, numerics);
  return with_errors(std::move(values), part);
}

// The first `columns` of the states rounded to bf16, as [groups of all states, how.group].
Tracked stored_groups(const Estimate& states, std::int64_t begin, std::int64_t end,
                      std::int64_t columns, const GroupQuant& how, const Numerics& numerics) {
  return reshaped(rounded(with_numerics(states, begin, end, columns, numerics), Format::bf16),
                  {(end - begin) * how.groups(columns), how.group});
}

// [dim, dim], with 1 and -1.
Tracked hadamard_matrix(std::int64_t dim, const Numerics& numerics) {
  std::vector<double> signs;
  for (std::int64_t i = 0; i < dim * dim; ++i) {
    signs.push_back(std::popcount(static_cast<std::uint64_t>(i / dim & i % dim)) % 2 ? -1 : 1);
  }
  return {std::move(signs), {dim, dim}, numerics};
}

}  // namespace

Estimate compressed_states(const CompressedStates& inputs, const Numerics& numerics) {
  const std::int64_t dim = inputs.head_dim;
  std::vector<double> weight;
  for (std::int64_t d = 0; d < dim; ++d) weight.push_back(decode_bf16(inputs.weight[d]));
  const auto turns = [&](std::int64_t row) {
    return inputs.cos_sin + inputs.positions[row] / inputs.ratio * inputs.ratio * kRopeDim;
  };
  const Estimate means = pooled(inputs, numerics);
  const auto of_rows = [&](std::int64_t begin, std::int64_t end) {
    const Tracked c = with_numerics(means, begin, end, dim, numerics);
    const Tracked r = rsqrt(mean(c * c, 1) + inputs.eps);
    Tracked y = limited_rows(c * r, r) * Tracked(weight, {1, dim}, numerics);
    if (inputs.rounding != CompressedRounding::store) y = rounded(std::move(y), Format::bf16);
    Tracked rotated =
        joined({sliced(y, 1, 0, dim - kRopeDim),
                rotate(sliced(y, 1, dim - kRopeDim, kRopeDim), begin, turns, Rotation::forward)},
               1);
    if (!inputs.hadamard) return rotated;
    return matmul(rounded(std::move(rotated), Format::bf16), hadamard_matrix(dim, numerics)) *
           (1 / std::sqrt(static_cast<double>(dim)));
  };
  Estimate states = estimate_by_blocks(std::ssize(inputs.positions), 8, Format::f32, of_rows);
  // Subnormal numbers may be flushed to zero, and the sign of a sum of zeros depends on the order.
  constexpr double kUnderflow = 0x1p-126;
  for (double& sigma : states.sigma) sigma += kUnderflow;
  for (double& worst : states.worst) worst += kUnderflow;
  return states;
}

Estimate compressed_fp32_scales(const Estimate& states, std::int64_t columns, const GroupQuant& how,
                                const Numerics& numerics) {
  const auto floor = [&](double least) { return Tracked({least}, {}, numerics); };
  const auto scales = [&](std::int64_t begin, std::int64_t end) {
    const Tracked amax = max(abs(stored_groups(states, begin, end, columns, how, numerics)), 1);
    const Tracked scale =
        max(max(amax, floor(how.amax_floor)) / how.largest, floor(how.scale_floor));
    return reshaped(scale, {end - begin, how.groups(columns)});
  };
  return estimate_by_blocks(states.rows, 4, Format::f32, scales);
}

CodeEstimate compressed_scales(const Estimate& states, std::int64_t columns, const GroupQuant& how,
                               const Numerics& numerics) {
  return {.format = CodeFormat::ue8m0,
          .before = compressed_fp32_scales(states, columns, how, numerics)};
}

CodeEstimate compressed_codes(const Estimate& states, std::int64_t columns,
                              const std::vector<double>& scales, const GroupQuant& how,
                              const Numerics& numerics) {
  const std::int64_t groups = how.groups(columns);
  const auto quotients = [&](std::int64_t begin, std::int64_t end) {
    const Tracked scale({scales.begin() + begin * groups, scales.begin() + end * groups},
                        {(end - begin) * groups, 1}, numerics);
    const Tracked groups_of_block = stored_groups(states, begin, end, columns, how, numerics);
    const Tracked quotient = how.by_reciprocal
                                 ? groups_of_block * (Tracked({1}, {}, numerics) / scale)
                                 : groups_of_block / scale;
    return reshaped(clamp(quotient, -how.largest, how.largest), {end - begin, columns});
  };
  // All channels of a state share the error of its norm.
  CodeEstimate codes{.format = how.code,
                     .before = estimate_by_blocks(states.rows, 4, Format::f64, quotients),
                     .shared_error = columns};
  for (std::int64_t g = 0; g < std::ssize(scales); ++g) {
    if (scales[g] > 0 && std::isfinite(scales[g])) continue;
    for (std::vector<double>* of : {&codes.before.sigma, &codes.before.worst}) {
      std::fill_n(of->begin() + g * how.group, how.group, std::nan(""));
    }
  }
  return codes;
}

Estimate compressed_columns(const Estimate& states, std::int64_t first) {
  const std::int64_t columns = states.columns - first;
  Estimate part = states;
  part.resize(states.rows, columns);
  part.output = Format::bf16;
  part.shift.clear();
  for (std::int64_t i = 0; i < states.rows * columns; ++i) {
    const std::int64_t from = i / columns * states.columns + first + i % columns;
    part.value[i] = states.value[from];
    part.sigma[i] = states.sigma[from];
    part.worst[i] = states.worst[from];
    if (!states.shift.empty()) part.shift.push_back(states.shift[from]);
    // The error of the norm is shared by a whole row, so the sigmas add up linearly.
    double& row = part.row_mean_sigma[i / columns];
    row += states.sigma[from] / static_cast<double>(columns);
  }
  return part;
}

Estimate placed_states(const Estimate& states, const std::vector<std::int64_t>& places,
                       std::int64_t rows) {
  Estimate all;
  all.resize(rows, states.columns);
  all.output = states.output;
  all.structured = states.structured;
  const auto copy = [&](const std::vector<double>& from, std::vector<double>& to,
                        std::int64_t columns) {
    if (from.empty()) return;
    to.resize(static_cast<std::size_t>(rows * columns), 0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto begin = from.begin() + static_cast<std::int64_t>(i) * columns;
      std::copy(begin, begin + columns, to.begin() + places[i] * columns);
    }
  };
  copy(states.value, all.value, states.columns);
  copy(states.sigma, all.sigma, states.columns);
  copy(states.worst, all.worst, states.columns);
  copy(states.shift, all.shift, states.columns);
  copy(states.row_mean_sigma, all.row_mean_sigma, 1);
  copy(states.row_systematic, all.row_systematic, 1);
  copy(states.row_concentration, all.row_concentration, 1);
  return all;
}

}  // namespace plumb::reference
