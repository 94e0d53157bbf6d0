// SPDX-License-Identifier: Apache-2.0
//
// What the cases of cache writers share: tokens that go to slots of a paged cache. Live rows are
// tokens; a padded one has slot -1, and tokens past the slot mapping are none.
#pragma once

#include <string>
#include <vector>

#include "cases/ops/cache/cache_pool.h"
#include "cases/tables/problem.h"
#include "reference/quantization/group_quant.h"

namespace plumb::cases {

class CacheWriterProblem : public Problem {
 public:
  std::int64_t capacity() const override { return pool_.tokens; }
  double checked_factor() const override { return 3; }  // whole vectors, and arithmetic

 protected:
  // `pool.block_bytes` is still the caller's to set, from pool.page.
  CacheWriterProblem(const Row& row, const device::Properties& platform);

  // Rows [0, live) of a bf16 tensor of tokens.
  void add_tokens(TensorSet& tensors, const std::string& name, std::int64_t columns) const;
  std::int64_t row_stride(std::int64_t columns) const { return columns + gap_; }
  std::int64_t token_rows() const { return pool_.tokens + extra_tokens_; }
  // Codes under the scales that the device stored.
  TensorReport judge_stored_codes(const CacheContents& contents, const reference::Bf16Rows& x,
                                  const std::vector<double>& scales,
                                  const reference::GroupQuant& how,
                                  const reference::Numerics& numerics) const;
  // fp32 scales, as they are or as powers of two.
  TensorReport judge_stored_scales(const CacheContents& contents, const reference::Bf16Rows& x,
                                   const reference::GroupQuant& how, bool power_of_two,
                                   const reference::Numerics& numerics) const;
  double writer_cost(std::int64_t groups, std::int64_t columns) const;
  double writer_reference_cost(std::int64_t columns) const;

  CachePoolShape pool_;

 private:
  std::int64_t extra_tokens_, gap_;
};

// Tokens that the slot mapping names.
reference::Bf16Rows mapped_tokens(const HostTensor& tokens, std::int64_t count);
std::vector<Parameter> cache_writer_parameters(std::int64_t default_page);

}  // namespace plumb::cases
