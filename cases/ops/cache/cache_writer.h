// SPDX-License-Identifier: Apache-2.0
//
// Shared by the cases of cache writers: tokens that go to slots of a paged cache. Rows are tokens.
// Padded tokens have slots that are skipped. Tokens past the slot mapping are not written.
#pragma once

#include <string>
#include <vector>

#include "cases/ops/cache/cache_pool.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "reference/quantization/group_quant.h"

namespace plumb::cases {

// minus_one: vLLM's Triton writers. negative: vLLM's CUDA writers and SGLang's fused one. never:
// SGLang's plain writers, because its engine has a slot for padded tokens.
inline const ContractChoice kSkip{
    "skip",
    {"minus_one", "negative", "never"},
    "the slots whose tokens are skipped",
    {{"*", "never", "no slot is negative"}, {"negative", "minus_one", "no slot is below -1"}}};
// 1e-4: vLLM, and SGLang's CUDA writers. 1e-8: SGLang's Triton writers.
inline const ContractChoice kAmaxFloor{"floor", {"1e-4", "1e-8"}, "least amax of a group"};

inline const WordParameter kSlots{
    "slots", {"scattered", "whole_blocks"}, "of the tokens: anywhere, or block after block"};

class CacheWriter {
 protected:
  // The caller sets `pool_.block_bytes` and `pool_.skip` afterwards.
  CacheWriter(const Row& row, const device::Properties& platform);

  // Expects the codes of the first columns of `x` under the scales that the device stored.
  Expectation expect_stored_codes(const CacheContents& contents, const HostTensor& x,
                                  const std::vector<double>& scales,
                                  const reference::GroupQuant& how,
                                  const reference::Numerics& numerics) const;
  // Expects the scales, which the cache stores in fp32.
  Expectation expect_stored_scales(const CacheContents& contents, const HostTensor& x,
                                   const reference::GroupQuant& how, plumb_scale_form form,
                                   const reference::Numerics& numerics) const;
  // The first `columns` columns of the tokens that the slot mapping has.
  reference::Bf16Rows tokens_of(const HostTensor& x, std::int64_t columns) const;
  double writer_cost(std::int64_t groups, std::int64_t columns) const;
  double writer_reference_cost(std::int64_t columns) const;

  CachePoolShape pool_;
};

template <class P>
class CacheWriterProblem : public TableProblem<P>, protected CacheWriter {
 public:
  double checked_factor() const override {
    return 3;
  }  // few accesses: whole vectors, much arithmetic
  // The base class counts the whole cache twice, as an input and as an output, but a launch writes
  // only the bytes of the tokens. So the cache is subtracted twice, and these bytes are added.
  double moved_bytes(const TensorSet& tensors) const override {
    const auto block = static_cast<double>(pool_.block_bytes);
    return Problem::moved_bytes(tensors) - 2 * block * static_cast<double>(pool_.blocks()) +
           block * static_cast<double>(pool_.tokens) / static_cast<double>(pool_.page);
  }

 protected:
  CacheWriterProblem(const OpTable& table, const Row& row, const device::Properties& platform)
      : TableProblem<P>(table, row, platform), CacheWriter(row, platform) {
    pool_.block_bytes = this->p_.cache.block_stride_bytes;
    pool_.skip = this->p_.skip;
  }
  void place(TensorSpec& spec) const override { place_cache_pool(pool_, spec); }
};

// Adds to an op's table the input that has a row for each token. It may have more rows than the
// slot mapping has entries.
template <class P>
void add_tokens(TablePart<P>& t, const std::string& name, const std::uint16_t* P::* tensor,
                std::int64_t P::* row_stride, const Formula& tokens, const Formula& columns) {
  const Formula stride = t.scalar(name + "_row_stride", row_stride, columns + parameter("row_gap"));
  t.input(name, tensor, {tokens + parameter("extra_tokens"), columns}, "tokens to be written")
      .strides({stride, 1});
}
template <class P>
void add_slot_mapping(TablePart<P>& t, const Formula& tokens) {
  t.choice("skip", &P::skip, kSkip);
  t.input("slot_mapping", &P::slot_mapping, {tokens}, "block * page + offset; negative: skipped");
}

std::vector<Parameter> cache_writer_parameters(std::int64_t default_page);

}  // namespace plumb::cases
