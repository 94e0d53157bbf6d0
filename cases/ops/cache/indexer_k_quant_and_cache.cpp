// SPDX-License-Identifier: Apache-2.0
//
// Cases of indexer_k_quant_and_cache: planar and shuffled layouts, with scales as plain fp32 and as
// powers of two.
#include "reference/cache/indexer_k_quant_and_cache.h"

#include <fmt/format.h>

#include "cases/ops/cache/cache_writer.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace indexer_k_quant_and_cache_cases {

using reference::CacheEntry;

using P = plumb_indexer_k_quant_and_cache_params;

// pow2: vLLM by default. fp32: SGLang, and vLLM on demand.
const ContractChoice kScaleForm{
    "scale_form", {"pow2", "fp32"}, "pow2: scales are rounded up to powers of two"};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens);
  const Formula head_dim = t.scalar("head_dim", &P::head_dim);
  const Formula quant_block =
      t.scalar("quant_block_size", &P::quant_block_size, parameter("quant_block"));
  t.word("scale_form", &P::scale_form,
         {"scale_form", {{"pow2", PLUMB_SCALE_POWER_OF_TWO}, {"fp32", PLUMB_SCALE_AS_IT_IS}}});
  t.real("amax_floor", &P::amax_floor, kAmaxFloor, "least amax of a group");
  t.word("shuffled", &P::shuffled, {"layout", {{"planar", 0}, {"shuffled", 1}}});
  add_tokens(t, "k", &P::k, &P::k_row_stride, tokens, head_dim);
  add_slot_mapping(t, tokens);
  auto cache = t.part("cache", &P::cache);
  const Formula page = cache.scalar("page", &plumb_paged_cache::page);
  add_cache_pool(cache, tokens, page,
                 page * (head_dim + div_up(head_dim, quant_block) * 4) + parameter("block_gap"),
                 "per block all codes, then all f32 scales");
  return tokens;
}

class IndexerKQuantProblem final : public CacheWriterProblem<P> {
 public:
  IndexerKQuantProblem(const Row& row, const device::Properties& platform)
      : CacheWriterProblem(table_of<members>(), row, platform),
        layout_{.page = p_.cache.page,
                .head_dim = p_.head_dim,
                .quant_block = p_.quant_block_size,
                .shuffled = p_.shuffled != 0} {
    check(row);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("k"), step.live, mix(step.seed, 1), step, how());
    fill_cache_pool(pool_, step, tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics& numerics,
                      const plumb_numerics&) const override {
    const CacheContents contents(pool_, tensors, [this](std::int64_t offset) {
      return reference::indexer_k_entry(layout_, offset);
    });
    const HostTensor& k = tensors.at("k");
    const std::vector<double> scales =
        numbers_of(contents.stored("cache.scales", Dtype::f32, &CacheEntry::scales));
    return {expect_stored_scales(contents, k, how(), p_.scale_form, numerics),
            expect_stored_codes(contents, k, scales, how(), numerics), contents.expect_rest()};
  }

  double cost() const override { return writer_cost(layout_.groups(), layout_.head_dim); }
  double reference_cost() const override { return writer_reference_cost(layout_.head_dim); }

 private:
  reference::GroupQuant how() const {
    return reference::indexer_k_quant(pool_.dialect, layout_.quant_block, double{p_.amax_floor});
  }

  void check(const Row& row) const {
    if (layout_.head_dim % layout_.quant_block != 0) {
      throw BadRow(row.where + ": quant_block has to divide head_dim");
    }
    if (!layout_.has_whole_tiles()) {
      throw BadRow(row.where + ": the shuffled layout has tiles of 16 tokens by 16 bytes");
    }
    if (layout_.page * layout_.head_dim % 4 != 0 || pool_.block_bytes % 4 != 0) {
      throw BadRow(row.where + ": scales have to be aligned");
    }
  }

  reference::IndexerCacheLayout layout_;
};

}  // namespace indexer_k_quant_and_cache_cases

OpDefinition define_indexer_k_quant_and_cache() {
  using namespace indexer_k_quant_and_cache_cases;
  std::vector<Parameter> parameters = cache_writer_parameters(64);
  parameters.push_back({"block_gap", 0, 0, 1 << 20, "bytes between blocks, guarded"});
  parameters.push_back({"head_dim", 128, 1, 4096, "columns of a key"});
  parameters.push_back({"quant_block", 128, 1, 4096, "columns under one scale"});
  return {{"indexer_k_quant_and_cache",
           "the indexer cache's writer: fp8 keys and fp32 scales into slots",
           std::move(parameters),
           {dialect_word(),
            kSlots,
            {"layout",
             {"planar", "shuffled"},
             "of the keys in a block: row after row, or AITER's tiles"}},
           {kSkip, kScaleForm, kAmaxFloor}},
          make_problem_of<IndexerKQuantProblem>,
          {},
          {},
          &table_of<members>()};
}

}  // namespace plumb::cases
