// SPDX-License-Identifier: Apache-2.0
//
// Cases of quantize_and_insert_k_cache: the V4 cache's writer.
#include "reference/cache/quantize_and_insert_k_cache.h"

#include "cases/judge/judge_codes.h"
#include "cases/ops/cache/cache_writer.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tensors/fill.h"
#include "reference/cache/kv_cache.h"

namespace plumb::cases {

namespace {

using reference::CacheEntry;
using reference::kMlaDim;
using reference::kMlaNope;

class QuantizeAndInsertProblem final : public CacheWriterProblem {
 public:
  QuantizeAndInsertProblem(const Row& row, const device::Properties& platform)
      : CacheWriterProblem(row, platform) {
    pool_.block_bytes = reference::kv_block_bytes(pool_.page);
    pool_.token_layout =
        "per block all tokens (448 codes, 64 bf16), then per token 7 ue8m0 scales of 64 codes each";
  }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    add_tokens(tensors, "kv", kMlaDim);
    add_cache_pool(pool_, tensors);
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("kv"), step.live, mix(step.seed, 1), step, how());
    fill_cache_pool(pool_, step, tensors);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_quantize_and_insert_k_cache_params p{};
    p.kv = tensors.get<std::uint16_t>("kv");
    p.slot_mapping = tensors.get<std::int64_t>("slot_mapping");
    p.cache = device_cache_pool(pool_, tensors);
    p.tokens = pool_.tokens;
    p.kv_row_stride = row_stride(kMlaDim);
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    const CacheContents contents(pool_, tensors, [this](std::int64_t offset) {
      return reference::k_cache_entry(pool_.page, offset);
    });
    const HostTensor& kv = tensors.at("kv");
    reference::Bf16Rows nope = mapped_tokens(kv, pool_.tokens);
    nope.columns = kMlaNope;
    const HostTensor scales = contents.stored("cache.scales", Dtype::u8, &CacheEntry::scales);
    std::vector<double> numbers;
    for (const double byte : numbers_of(scales)) {
      numbers.push_back(decode(reference::CodeFormat::ue8m0, static_cast<std::uint16_t>(byte)));
    }
    return {judge_codes(scales, group_scale_bytes(nope, how(), numerics), contents.written()),
            judge_stored_codes(contents, nope, numbers, how(), numerics),
            judge_exact(contents.stored("cache.rope", Dtype::u8, &CacheEntry::copied), copied(kv),
                        contents.written()),
            contents.judge_rest()};
  }

  double cost() const override { return writer_cost(8, kMlaDim); }
  double reference_cost() const override { return writer_reference_cost(kMlaDim); }

 private:
  reference::GroupQuant how() const { return reference::k_cache_quant(pool_.dialect); }

  std::vector<std::int64_t> copied(const HostTensor& kv) const {
    std::vector<std::int64_t> bytes;
    for (std::int64_t token = 0; token < pool_.tokens; ++token) {
      const auto of_token = reference::k_cache_copied(kv.row<std::uint16_t>(token));
      bytes.insert(bytes.end(), of_token.begin(), of_token.end());
    }
    return bytes;
  }
};

}  // namespace

OpDefinition define_quantize_and_insert_k_cache() {
  return {{"quantize_and_insert_k_cache",
           "the V4 cache's writer: fp8 codes, UE8M0 scales and RoPE into slots",
           cache_writer_parameters(64),
           {"dialect"}},
          [](const Row& row, const device::Properties& platform) -> std::unique_ptr<Problem> {
            return std::make_unique<QuantizeAndInsertProblem>(row, platform);
          }};
}

}  // namespace plumb::cases
