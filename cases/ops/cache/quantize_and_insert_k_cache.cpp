// SPDX-License-Identifier: Apache-2.0
//
// Cases of quantize_and_insert_k_cache, the writer of V4's cache.
#include "reference/cache/quantize_and_insert_k_cache.h"

#include "cases/ops/cache/cache_writer.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"
#include "reference/cache/kv_cache.h"

namespace plumb::cases {

namespace quantize_and_insert_k_cache_cases {

using reference::CacheEntry;
using reference::kMlaDim;
using reference::kMlaNope;
using reference::kMlaScaleBytes;
using reference::kMlaTokenBytes;

using P = plumb_quantize_and_insert_k_cache_params;

// zero: vLLM's writers. untouched: SGLang's writers.
const ContractChoice kPad{"pad", {"zero", "untouched"}, "the byte behind the scales of a token"};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens);
  add_tokens(t, "kv", &P::kv, &P::kv_row_stride, tokens, kMlaDim);
  add_slot_mapping(t, tokens);
  t.choice("pad", &P::pad, kPad);
  t.real("amax_floor", &P::amax_floor, kAmaxFloor, "least amax of a group");
  auto cache = t.part("cache", &P::cache);
  const Formula page = cache.scalar("page", &plumb_paged_cache::page);
  add_cache_pool(
      cache, tokens, page,
      div_up(page * (kMlaTokenBytes + kMlaScaleBytes), kMlaTokenBytes) * kMlaTokenBytes,
      "per block all tokens (448 codes, 64 bf16), then per token 7 ue8m0 scales of 64 codes each");
  return tokens;
}

class QuantizeAndInsertProblem final : public CacheWriterProblem<P> {
 public:
  QuantizeAndInsertProblem(const Row& row, const device::Properties& platform)
      : CacheWriterProblem(table_of<members>(), row, platform) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("kv"), step.live, mix(step.seed, 1), step, how());
    fill_cache_pool(pool_, step, tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics& numerics,
                      const plumb_numerics&) const override {
    const CacheContents contents(pool_, tensors, [this](std::int64_t offset) {
      return reference::k_cache_entry(pool_.page, offset, pads());
    });
    const HostTensor& kv = tensors.at("kv");
    const HostTensor scales = contents.stored("cache.scales", Dtype::u8, &CacheEntry::scales);
    std::vector<double> numbers;
    for (const double byte : numbers_of(scales)) {
      numbers.push_back(decode(reference::CodeFormat::ue8m0, static_cast<std::uint16_t>(byte)));
    }
    return {expect_codes(scales, group_scale_bytes(tokens_of(kv, kMlaNope), how(), numerics),
                         contents.judged(kv)),
            expect_stored_codes(contents, kv, numbers, how(), numerics),
            expect_exact(contents.stored("cache.rope", Dtype::u8, &CacheEntry::copied), copied(kv),
                         contents.judged(kv)),
            contents.expect_rest()};
  }

  double cost() const override { return writer_cost(8, kMlaDim); }
  double reference_cost() const override { return writer_reference_cost(kMlaDim); }

 private:
  bool pads() const { return p_.pad == PLUMB_PAD_ZERO; }
  reference::GroupQuant how() const {
    return reference::k_cache_quant(pool_.dialect, double{p_.amax_floor});
  }

  std::vector<std::int64_t> copied(const HostTensor& kv) const {
    std::vector<std::int64_t> bytes;
    for (std::int64_t token = 0; token < pool_.tokens; ++token) {
      const auto of_token = reference::k_cache_copied(kv.row<std::uint16_t>(token), pads());
      bytes.insert(bytes.end(), of_token.begin(), of_token.end());
    }
    return bytes;
  }
};

}  // namespace quantize_and_insert_k_cache_cases

OpDefinition define_quantize_and_insert_k_cache() {
  using namespace quantize_and_insert_k_cache_cases;
  return {{"quantize_and_insert_k_cache",
           "the V4 cache's writer: fp8 codes, UE8M0 scales and RoPE into slots",
           cache_writer_parameters(64),
           {dialect_word(), kSlots},
           {kSkip, kPad, kAmaxFloor}},
          make_problem_of<QuantizeAndInsertProblem>,
          {},
          {},
          &table_of<members>()};
}

}  // namespace plumb::cases
