// SPDX-License-Identifier: Apache-2.0
//
// What the cases of cache writers share: tokens that go to slots of a paged cache. Live rows are
// tokens; a padded one has slot -1, and tokens past the slot mapping are none.
#pragma once

#include <string>
#include <vector>

#include "cases/ops/cache/cache_pool.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "reference/quantization/group_quant.h"

namespace plumb::cases {

class CacheWriter {
 protected:
  // `pool_.block_bytes` is still the caller's to set.
  CacheWriter(const Row& row, const device::Properties& platform);

  // Codes under the scales that the device stored.
  Expectation expect_stored_codes(const CacheContents& contents, const reference::Bf16Rows& x,
                                  const std::vector<double>& scales,
                                  const reference::GroupQuant& how,
                                  const reference::Numerics& numerics) const;
  // fp32 scales, as they are or as powers of two.
  Expectation expect_stored_scales(const CacheContents& contents, const reference::Bf16Rows& x,
                                   const reference::GroupQuant& how, bool power_of_two,
                                   const reference::Numerics& numerics) const;
  double writer_cost(std::int64_t groups, std::int64_t columns) const;
  double writer_reference_cost(std::int64_t columns) const;

  CachePoolShape pool_;
};

template <class P>
class CacheWriterProblem : public TableProblem<P>, protected CacheWriter {
 public:
  double checked_factor() const override { return 3; }  // whole vectors, and arithmetic

 protected:
  CacheWriterProblem(const OpTable& table, const Row& row, const device::Properties& platform)
      : TableProblem<P>(table, row, platform), CacheWriter(row, platform) {
    pool_.block_bytes = this->p_.cache.block_stride_bytes;
  }
  void place(TensorSpec& spec) const override { place_cache_pool(pool_, spec); }
};

// Tokens of an op, of which the slot mapping may name fewer.
template <class P>
void add_tokens(TablePart<P>& t, const std::string& name, const std::uint16_t* P::* tensor,
                std::int64_t P::* row_stride, const Formula& tokens, const Formula& columns) {
  const Formula stride = t.scalar(name + "_row_stride", row_stride, columns + parameter("row_gap"));
  t.input(name, tensor, {tokens + parameter("extra_tokens"), columns}, "tokens to be written")
      .strides({stride, 1});
}
template <class P>
void add_slot_mapping(TablePart<P>& t, const Formula& tokens) {
  t.input("slot_mapping", &P::slot_mapping, {tokens}, "block * page + offset; negative: none");
}

// Tokens that the slot mapping names.
reference::Bf16Rows mapped_tokens(const HostTensor& tokens, std::int64_t count);
std::vector<Parameter> cache_writer_parameters(std::int64_t default_page);

}  // namespace plumb::cases
