// SPDX-License-Identifier: Apache-2.0
//
// Cases of concat_and_cache_ds_mla, the writer of V3.2's cache.
#include "reference/cache/concat_and_cache_ds_mla.h"

#include <cstring>

#include "cases/ops/cache/cache_writer.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace concat_and_cache_ds_mla_cases {

using reference::CacheEntry;
using reference::kDsMlaLatent;
using reference::kDsMlaRope;

using P = plumb_concat_and_cache_ds_mla_params;

// fp32: vLLM 0.22.1 (floor 2^-126) and SGLang (no floor: a tile of zeros becomes NaN). pow2: vLLM
// 0.33 (floor 1e-4), since FlashMLA's kernels of all architectures read powers of two alike (vllm
// #49435).
const ContractChoice kScaleForm{
    "scale_form", {"fp32", "pow2"}, "pow2: scales are rounded up to powers of two"};
const ContractChoice kScaleFloor{
    "floor", {"0x1p-126", "1e-4"}, "least scale, before it is rounded to a power of two"};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens);
  add_tokens(t, "kv_c", &P::kv_c, &P::kv_c_row_stride, tokens, kDsMlaLatent);
  add_tokens(t, "k_pe", &P::k_pe, &P::k_pe_row_stride, tokens, kDsMlaRope);
  add_slot_mapping(t, tokens);
  t.choice("scale_form", &P::scale_form, kScaleForm);
  t.real("scale_floor", &P::scale_floor, kScaleFloor, "least scale of a group");
  auto cache = t.part("cache", &P::cache);
  const Formula page = cache.scalar("page", &plumb_paged_cache::page);
  add_cache_pool(cache, tokens, page, page * reference::kDsMlaTokenBytes + parameter("block_gap"),
                 "per token 512 codes, 4 f32 scales of 128 codes each, 64 bf16");
  return tokens;
}

class ConcatAndCacheProblem final : public CacheWriterProblem<P> {
 public:
  ConcatAndCacheProblem(const Row& row, const device::Properties& platform)
      : CacheWriterProblem(table_of<members>(), row, platform) {
    if (pool_.block_bytes % 4 != 0) throw BadRow(row.where + ": scales need blocks of 4 bytes");
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("kv_c"), step.live, mix(step.seed, 1), step, how());
    fill_quant_rows(tensors.at("k_pe"), step.live, mix(step.seed, 2), step, how());
    fill_cache_pool(pool_, step, tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics& numerics,
                      const plumb_numerics&) const override {
    const CacheContents contents(pool_, tensors, reference::ds_mla_entry);
    const HostTensor &latent = tensors.at("kv_c"), &k_pe = tensors.at("k_pe");
    const std::vector<double> scales =
        numbers_of(contents.stored("cache.scales", Dtype::f32, &CacheEntry::scales));
    return {expect_stored_scales(contents, latent, how(), p_.scale_form, numerics),
            expect_stored_codes(contents, latent, scales, how(), numerics),
            expect_exact(contents.stored("cache.rope", Dtype::u8, &CacheEntry::copied),
                         rope_bytes(k_pe), contents.judged(k_pe)),
            contents.expect_rest()};
  }

  double cost() const override { return writer_cost(5, kDsMlaLatent + kDsMlaRope); }
  double reference_cost() const override { return writer_reference_cost(kDsMlaLatent); }

 private:
  reference::GroupQuant how() const {
    return reference::ds_mla_quant(pool_.dialect, double{p_.scale_floor});
  }

  std::vector<std::int64_t> rope_bytes(const HostTensor& k_pe) const {
    std::vector<std::int64_t> expected;
    for (std::int64_t token = 0; token < pool_.tokens; ++token) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(k_pe.row<std::uint16_t>(token));
      expected.insert(expected.end(), bytes, bytes + 2 * kDsMlaRope);
    }
    return expected;
  }
};

}  // namespace concat_and_cache_ds_mla_cases

OpDefinition define_concat_and_cache_ds_mla() {
  using namespace concat_and_cache_ds_mla_cases;
  std::vector<Parameter> parameters = cache_writer_parameters(64);
  parameters.push_back({"block_gap", 0, 0, 1 << 20, "bytes between blocks, guarded"});
  return {{"concat_and_cache_ds_mla",
           "the V3.2 cache's writer: fp8 codes, fp32 scales and RoPE into slots",
           std::move(parameters),
           {dialect_word(), kSlots},
           {kSkip, kScaleForm, kScaleFloor}},
          make_problem_of<ConcatAndCacheProblem>,
          {},
          {},
          &table_of<members>()};
}

}  // namespace plumb::cases
