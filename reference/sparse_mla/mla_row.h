// SPDX-License-Identifier: Apache-2.0
//
// Computes one query row of a sparse MLA from its candidates. For each head: the output, reduced by
// the sink's share, and the log-sum-exp and the largest score, both in natural units and without
// the sink.
#pragma once

#include "reference/sparse_mla/mla_attention.h"
#include "reference/sparse_mla/mla_error.h"

namespace plumb::reference {

enum class MlaWant { value, value_and_bound };

// Computes query rows one after the other on one thread.
class MlaRowWorker {
 public:
  MlaRowWorker(const SparseMlaProblem& problem, const Numerics& numerics, MlaWant want)
      : problem_(problem), want_(want), model_(numerics) {
    attention_.queries.resize(problem.key_dims(), problem.heads);
  }
  void run(std::int64_t request, std::int64_t query);
  // Uses only the candidates of one split.
  void run_blocks(const PlannedSpan& span, const RequestBlocks& blocks, std::int64_t block_n,
                  std::int64_t query);

  const MlaAttention& attention() const { return attention_; }
  const MlaError* error() const { return want_ == MlaWant::value ? nullptr : &error_; }

 private:
  void attend_to_keys(std::int64_t request, std::int64_t query);

  const SparseMlaProblem& problem_;
  MlaWant want_;
  MlaErrorModel model_;
  GatheredKeys keys_;
  MlaAttention attention_;
  MlaError error_;
};

// Stores results into Estimates that are initialised to zero. Without `error`, stores values only.
class MlaOutput {
 public:
  MlaOutput(const SparseMlaProblem& problem, const Numerics& numerics)
      : problem_(problem), units_(attention_units(numerics)) {}

  // Stores a row of 512 elements; 0 without candidates.
  void store_out(const MlaAttention& attention, const MlaError* error, std::int64_t head,
                 std::int64_t row, Estimate& out) const;
  // Each stores one element. Without candidates, lse is +infinity and the maximum is -infinity.
  void store_lse(const MlaAttention& attention, const MlaError* error, std::int64_t head,
                 std::int64_t at, Estimate& lse) const;
  void store_max(const MlaAttention& attention, const MlaError* error, std::int64_t head,
                 std::int64_t at, Estimate& max_logits) const;

 private:
  double natural_logarithm(double lse, double max) const;
  double natural_constant(double x) const;
  void store_out_error(const MlaAttention& attention, const MlaError& error, std::int64_t head,
                       double share, std::int64_t row, Estimate& out) const;

  const SparseMlaProblem& problem_;
  AttentionUnits units_;
};

}  // namespace plumb::reference
