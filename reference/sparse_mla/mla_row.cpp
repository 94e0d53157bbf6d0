// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/mla_row.h"

#include <algorithm>
#include <cmath>

namespace plumb::reference {

namespace {

bool lonely(const MlaAttention& attention) { return attention.scores.rows() == 0; }

// With a large sink, the factor share / sum of the accumulators is subnormal. A device may flush it
// to 0, which makes the row zero. Returns the largest such error, relative to the row.
double flushed_share(double share, double sum) { return std::min(share, sum * kLeastNormalF32); }

}  // namespace

void MlaRowWorker::run(std::int64_t request, std::int64_t query) {
  gather_row(problem_, request, query, keys_);
  attend_to_keys(request, query);
}

void MlaRowWorker::run_blocks(const PlannedSpan& span, const RequestBlocks& blocks,
                              std::int64_t block_n, std::int64_t query) {
  gather_blocks(problem_, span.request, query, block_n, blocks, span.begin_block, span.end_block,
                keys_);
  attend_to_keys(span.request, query);
}

void MlaRowWorker::attend_to_keys(std::int64_t request, std::int64_t query) {
  decode_queries(problem_, request, query, attention_.queries.data());
  attend(keys_, problem_.sm_scale, attention_);
  if (want_ == MlaWant::value_and_bound) {
    model_.estimate(keys_, problem_.sm_scale, attention_, error_);
  }
}

// Largest error of converting (sum, max) from base 2 to lse: rounding the product of max and a
// rounded constant, or rounding the lse of each split and of their combination. The last rounding
// belongs to the output and is not included.
double MlaOutput::natural_logarithm(double lse, double max) const {
  return std::max(fp32_rounding(max), 2 * exponent_rounding(lse)) + natural_constant(lse) +
         units_.function;
}

// Error from the rounding of the constant, ln 2 or 1 / log2 e, to fp32.
double MlaOutput::natural_constant(double x) const { return 0.3 * units_.scalar * std::abs(x); }

void MlaOutput::store_lse(const MlaAttention& attention, const MlaError* error, std::int64_t head,
                          std::int64_t at, Estimate& lse) const {
  lse.value[at] = lonely(attention) ? kInfinity : attention.lse[head];
  if (error == nullptr) return;
  const double few = natural_logarithm(attention.lse[head], attention.max[head]);
  lse.sigma[at] = error->lse_sigma[head] + few / kSigmas;
  lse.worst[at] = error->lse_worst[head] + few;
  lse.row_systematic[at / lse.columns] +=
      error->lse_systematic[head] / static_cast<double>(lse.columns);
}

void MlaOutput::store_max(const MlaAttention& attention, const MlaError* error, std::int64_t head,
                          std::int64_t at, Estimate& max_logits) const {
  const double max = attention.max[head];
  max_logits.value[at] = lonely(attention) ? -kInfinity : max;
  if (error == nullptr) return;
  // A maximum in base 2 has the rounding of its score. The rounding of its product with the
  // constant is the output's own.
  const double constant = natural_constant(max);
  max_logits.sigma[at] = error->max_sigma[head] + constant / kSigmas;
  max_logits.worst[at] = error->max_worst[head] + constant;
  max_logits.row_systematic[at / max_logits.columns] +=
      (error->max_systematic[head] + constant) / static_cast<double>(max_logits.columns);
}

void MlaOutput::store_out(const MlaAttention& attention, const MlaError* error, std::int64_t head,
                          std::int64_t row, Estimate& out) const {
  if (lonely(attention)) return;
  const double share = share_of_keys(problem_, head, attention.lse[head]);
  for (std::int64_t i = 0; i < kMlaDim; ++i) {
    out.value[row * kMlaDim + i] = share * attention.out(i, head);
  }
  // If the keys have no share, out is exactly 0.
  if (error != nullptr && share > 0) store_out_error(attention, *error, head, share, row, out);
}

// The share of the keys depends on lse, so its error is common to the whole row. So are the errors
// of the weights with which an implementation combines splits.
void MlaOutput::store_out_error(const MlaAttention& attention, const MlaError& error,
                                std::int64_t head, double share, std::int64_t row,
                                Estimate& out) const {
  const double lse = attention.lse[head];
  const double sink = problem_.attn_sink == nullptr ? 0 : problem_.attn_sink[head];
  const double exponent = units_.scalar * (2 * std::abs(lse) + (share < 1 ? std::abs(sink) : 0));
  const double common = 2 * units_.function + exponent;
  const double sigma = std::sqrt(square(common) / 3 + square((1 - share) * error.lse_sigma[head]));
  const double worst = common + (1 - share) * error.lse_worst[head];
  const double flushed = flushed_share(share, attention.sum[head]);
  for (std::int64_t i = 0; i < kMlaDim; ++i) {
    const double size = std::abs(attention.out(i, head));
    const std::int64_t at = row * kMlaDim + i;
    out.sigma[at] = share * std::sqrt(square(error.sigma(i, head)) + square(sigma * size)) +
                    flushed * size / kSigmas;
    out.worst[at] = share * (error.worst(i, head) + worst * size) + flushed * size;
  }
  out.row_concentration[row] = error.concentration[head];
  const double size = error.mean_size[head];
  out.row_mean_sigma[row] =
      share * std::sqrt(square(error.mean_sigma[head]) + square(sigma * size));
  out.row_systematic[row] =
      share * (error.systematic[head] + (1 - share) * error.lse_systematic[head] * size) +
      flushed * size;
}

}  // namespace plumb::reference
