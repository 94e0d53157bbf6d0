// SPDX-License-Identifier: Apache-2.0
//
// Cases of indexer_k_quant_and_cache: block-planar and shuffled layouts, scales as they are and as
// powers of two.
#include "reference/cache/indexer_k_quant_and_cache.h"

#include <fmt/format.h>

#include "cases/ops/cache/cache_writer.h"
#include "cases/ops/quantization/quant_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using reference::CacheEntry;

class IndexerKQuantProblem final : public CacheWriterProblem {
 public:
  IndexerKQuantProblem(const Row& row, const device::Properties& platform)
      : CacheWriterProblem(row, platform),
        layout_{.page = pool_.page,
                .head_dim = row.integer("head_dim"),
                .quant_block = row.integer("quant_block"),
                .shuffled = row.word("layout") == "shuffled"},
        ue8m0_(row.integer("ue8m0") != 0) {
    pool_.block_bytes = layout_.block_bytes() + row.integer("block_gap");
    pool_.any_negative = true;
    pool_.token_layout = "per block all codes, then all f32 scales";
    check(row);
  }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    add_tokens(tensors, "k", layout_.head_dim);
    add_cache_pool(pool_, tensors);
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_quant_rows(tensors.at("k"), step.live, mix(step.seed, 1), step, how());
    fill_cache_pool(pool_, step, tensors);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_indexer_k_quant_and_cache_params p{};
    p.k = tensors.get<std::uint16_t>("k");
    p.slot_mapping = tensors.get<std::int64_t>("slot_mapping");
    p.cache = device_cache_pool(pool_, tensors);
    p.tokens = pool_.tokens;
    p.k_row_stride = row_stride(layout_.head_dim);
    p.head_dim = static_cast<std::int32_t>(layout_.head_dim);
    p.quant_block_size = static_cast<std::int32_t>(layout_.quant_block);
    p.ue8m0 = ue8m0_;
    p.shuffled = layout_.shuffled;
    p.stream = stream;
    return entry.launch(&p);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    const CacheContents contents(pool_, tensors, [this](std::int64_t offset) {
      return reference::indexer_k_entry(layout_, offset);
    });
    const reference::Bf16Rows k = mapped_tokens(tensors.at("k"), pool_.tokens);
    const std::vector<double> scales =
        numbers_of(contents.stored("cache.scales", Dtype::f32, &CacheEntry::scales));
    return {judge_stored_scales(contents, k, how(), ue8m0_, numerics),
            judge_stored_codes(contents, k, scales, how(), numerics), contents.judge_rest()};
  }

  double cost() const override { return writer_cost(layout_.groups(), layout_.head_dim); }
  double reference_cost() const override { return writer_reference_cost(layout_.head_dim); }

 private:
  reference::GroupQuant how() const {
    return reference::indexer_k_quant(pool_.dialect, layout_.quant_block);
  }

  void check(const Row& row) const {
    const std::string_view word = row.word("layout");
    if (!word.empty() && word != "planar" && word != "shuffled") {
      throw BadRow(fmt::format("{}: layout is planar or shuffled, not '{}'", row.where, word));
    }
    if (layout_.head_dim % layout_.quant_block != 0) {
      throw BadRow(row.where + ": quant_block has to divide head_dim");
    }
    const bool tiled = layout_.page % 16 == 0 && layout_.head_dim % 16 == 0;
    if (layout_.shuffled && layout_.page > 1 && !tiled) {
      throw BadRow(row.where + ": the shuffled layout has tiles of 16 tokens by 16 bytes");
    }
    if (layout_.page * layout_.head_dim % 4 != 0 || pool_.block_bytes % 4 != 0) {
      throw BadRow(row.where + ": scales have to be aligned");
    }
  }

  reference::IndexerCacheLayout layout_;
  bool ue8m0_;
};

}  // namespace

OpDefinition define_indexer_k_quant_and_cache() {
  std::vector<Parameter> parameters = cache_writer_parameters(64);
  parameters.push_back({"block_gap", 0, 0, 1 << 20, "bytes between blocks, guarded"});
  parameters.push_back({"head_dim", 128, 1, 4096, "columns of a key"});
  parameters.push_back({"quant_block", 128, 1, 4096, "columns under one scale"});
  parameters.push_back({"ue8m0", 1, 0, 1, "1: scales are powers of two"});
  return {{"indexer_k_quant_and_cache",
           "the indexer cache's writer: fp8 keys and fp32 scales into slots",
           std::move(parameters),
           {"dialect", "layout"}},
          [](const Row& row, const device::Properties& platform) -> std::unique_ptr<Problem> {
            return std::make_unique<IndexerKQuantProblem>(row, platform);
          }};
}

}  // namespace plumb::cases
