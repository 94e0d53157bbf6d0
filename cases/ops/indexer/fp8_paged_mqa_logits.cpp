// SPDX-License-Identifier: Apache-2.0
//
// Cases of fp8_paged_mqa_logits: next_n rows per request over a paged cache whose blocks are
// permuted anew in every step. Capacity and live count are requests. Every byte of the cache that
// belongs to no token in use is NaN in its format; block 0 is all NaN, and table entries that no
// token needs name it, or another request's block.
#include "reference/indexer/fp8_paged_mqa_logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cases/ops/cache/block_numbering.h"
#include "cases/ops/indexer/indexer_inputs.h"
#include "cases/ops/metadata/sequence_lengths.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

bool is_shuffled(const Row& row) {
  const std::string_view word = row.word("layout");
  if (word != "" && word != "planar" && word != "shuffled") {
    throw BadRow(fmt::format("{}: {} is no layout of an indexer cache", row.where, word));
  }
  return word == "shuffled";
}

class Fp8PagedMqaLogitsProblem final : public Problem {
 public:
  Fp8PagedMqaLogitsProblem(const Row& row, const device::Properties& platform)
      : lengths_(sequence_lengths(row, "context_lens_dims", "context_lens_gap")),
        heads_(row.integer("heads")),
        dim_(row.integer("dim")),
        max_context_len_(lengths_.length + row.integer("gap")),
        layout_{row.integer("page"), dim_, dim_, is_shuffled(row)},
        clean_(row.integer("clean") != 0),
        q_dialect_(dialect_of(row, "q_dialect", platform)),
        dialect_(dialect_of(row, "dialect", platform)) {
    pool_.blocks = row.integer("blocks") != 0 ? row.integer("blocks") : needed_blocks();
    pool_.block_bytes = layout_.block_bytes() + row.integer("block_gap");
    pool_.far = row.integer("far") != 0;
    for (std::int64_t i = 0; i < layout_.page; ++i) {
      entries_.push_back(indexer_k_entry(layout_, i));
    }
    if (clean_ && lengths_.dims == 2) {
      throw BadRow(fmt::format("{}: logits by 2-D lengths cannot be clean", row.where));
    }
  }

  std::int64_t capacity() const override { return lengths_.requests; }

  TensorSet make_tensors() const override {
    const std::int64_t requests = lengths_.requests, next_n = lengths_.next_n;
    TensorSet tensors;
    tensors.add({"q", Dtype::u8, {requests, next_n, heads_, dim_}, {}, Role::input, false});
    tensors.add({"weights", Dtype::f32, {rows(), heads_}, {}, Role::input, false});
    tensors.add(lengths_.spec("context_lens"));
    tensors.add({"block_table", Dtype::i32, {requests, table_width()}, {}, Role::input, false});
    tensors.add(pool_.spec("cache"));
    tensors.add({"logits",
                 Dtype::f32,
                 {rows(), padded_columns(max_context_len_)},
                 {},
                 Role::output,
                 false});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    lengths_.fill(step, tensors.at("context_lens"));
    check_blocks(pool_.blocks, needed_blocks());
    HostTensor& cache = tensors.at("cache");
    for (std::int64_t block = 0; block < pool_.blocks; ++block) poison(cache, block);
    const std::vector<std::int64_t> blocks = permuted_blocks(pool_.blocks, mix(step.seed, 24));
    for (std::int64_t request = 0; request < lengths_.requests; ++request) {
      auto* table = tensors.at("block_table").row<std::int32_t>(request);
      if (request < step.live) {
        fill_request(step, request, blocks, table, cache);
      } else if (step.dead_rows != DeadRows::foreign) {
        std::fill(table, table + table_width(), 0);
      }
    }
    fill_queries(step, step.live * lengths_.next_n, q_dialect_, tensors.at("q"),
                 tensors.at("weights"));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_fp8_paged_mqa_logits_params params{};
    params.q = tensors.get<std::uint8_t>("q");
    params.cache = {.data = tensors.get<std::uint8_t>("cache"),
                    .block_stride_bytes = pool_.block_bytes,
                    .num_blocks = pool_.num_blocks(),
                    .page = static_cast<std::int32_t>(layout_.page),
                    .dialect = format_of(dialect_)};
    params.weights = tensors.get<float>("weights");
    params.context_lens = tensors.get<std::int32_t>("context_lens");
    params.block_table = tensors.get<std::int32_t>("block_table");
    params.logits = tensors.get<float>("logits");
    params.requests = lengths_.requests;
    params.max_context_len = max_context_len_;
    params.logits_row_stride = padded_columns(max_context_len_);
    params.context_lens_stride = lengths_.stride();
    params.block_table_stride = table_width();
    params.context_lens_dims = static_cast<std::int32_t>(lengths_.dims);
    params.next_n = static_cast<std::int32_t>(lengths_.next_n);
    params.heads = static_cast<std::int32_t>(heads_);
    params.dim = static_cast<std::int32_t>(dim_);
    params.shuffled = layout_.shuffled ? 1 : 0;
    params.clean_logits = clean_ ? 1 : 0;
    params.q_dialect = format_of(q_dialect_);
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    const HostTensor& logits = tensors.at("logits");
    const std::vector<std::int32_t> table = host_table(tensors);
    reference::Fp8PagedMqaLogits input = reference_input(tensors);
    input.block_table = table.data();
    reference::Estimate expected = reference::fp8_paged_mqa_logits(input, numerics);
    expected.structured = step.fill != Fill::real;
    return {judge_floats(logits, expected, {}, groups_of(rows(), lengths_.next_n, "request"), {},
                         promised_columns(tensors, logits.spec()))};
  }

  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec&) const override {
    const reference::Fp8PagedMqaLogits input = reference_input(tensors);
    ColumnRanges ranges;
    for (std::int64_t row = 0; row < rows(); ++row) {
      ranges.push_back({0, clean_ ? max_context_len_ : context_length(input, row)});
    }
    return ranges;
  }

  double cost() const override { return of_requests(logits_cost); }
  double reference_cost() const override { return of_requests(logits_reference_cost); }
  double checked_factor() const override { return kLogitsCheckedFactor; }
  ReferenceWork reference_work() const override {
    return {.bytes = reference_bytes(make_tensors()),
            .multiply_adds = of_requests(logits_multiply_adds)};
  }

 private:
  std::int64_t rows() const { return lengths_.requests * lengths_.next_n; }
  std::int64_t blocks_per_request() const {
    return (lengths_.length + layout_.page - 1) / layout_.page;
  }
  std::int64_t needed_blocks() const { return 1 + lengths_.requests * blocks_per_request(); }
  std::int64_t table_width() const { return blocks_per_request() + 3; }

  double of_requests(double (*of_rows)(std::int64_t, std::int64_t, std::int64_t,
                                       std::int64_t)) const {
    double work = 0;
    for (std::int64_t request = 0; request < lengths_.requests; ++request) {
      const std::int64_t length = lengths_.length - lengths_.length_step * request;
      work += of_rows(lengths_.next_n, std::max<std::int64_t>(0, length), heads_, dim_);
    }
    return work;
  }

  void poison(HostTensor& cache, std::int64_t block) const {
    constexpr std::uint8_t kNanByteOfFloat = 0xff;
    auto* bytes = cache.row<std::uint8_t>(block);
    const std::int64_t values = layout_.page * dim_;
    std::fill(bytes, bytes + values, nan_code(dialect_));
    std::fill(bytes + values, bytes + pool_.block_bytes, kNanByteOfFloat);
  }

  void fill_request(const Step& step, std::int64_t request, const std::vector<std::int64_t>& blocks,
                    std::int32_t* table, HostTensor& cache) const {
    const std::int64_t length = lengths_.of(step, request);
    const auto* own = &blocks[static_cast<std::size_t>(request * blocks_per_request())];
    const std::int64_t needed = (length + layout_.page - 1) / layout_.page;
    for (std::int64_t i = 0; i < table_width(); ++i) {
      const std::int64_t block = i < needed ? own[i] : i % 2 == 0 ? 0 : blocks.front();
      table[i] = static_cast<std::int32_t>(pool_.address(block));
    }
    const KeyFill keys{step, mix(mix(step.seed, 25), request), dim_, dialect_};
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(dim_));
    for (std::int64_t position = 0; position < length; ++position) {
      const float scale = keys.write(position, codes.data());
      auto* block = cache.row<std::uint8_t>(own[position / layout_.page]);
      const reference::CacheEntry& entry =
          entries_[static_cast<std::size_t>(position % layout_.page)];
      for (std::size_t d = 0; d < codes.size(); ++d) block[entry.codes[d]] = codes[d];
      std::memcpy(block + entry.scales.front(), &scale, sizeof scale);
    }
  }

  // The device's block numbers as rows of the host's cache.
  std::vector<std::int32_t> host_table(const TensorSet& tensors) const {
    const HostTensor& on_device = tensors.at("block_table");
    const auto* first = on_device.data<std::int32_t>();
    std::vector<std::int32_t> table(first, first + on_device.elements());
    for (std::int32_t& block : table) {
      block = static_cast<std::int32_t>(pool_.far ? pool_.block_at(block) : block);
    }
    return table;
  }

  reference::Fp8PagedMqaLogits reference_input(const TensorSet& tensors) const {
    reference::Fp8PagedMqaLogits input;
    input.q = tensors.at("q").data<std::uint8_t>();
    input.weights = tensors.at("weights").data<float>();
    input.context_lens = tensors.at("context_lens").data<std::int32_t>();
    input.context_lens_stride = lengths_.stride();
    input.context_lens_dims = static_cast<std::int32_t>(lengths_.dims);
    input.cache = tensors.at("cache").data<std::uint8_t>();
    input.block_stride_bytes = pool_.block_bytes;
    input.layout = layout_;
    input.block_table_stride = table_width();
    input.requests = lengths_.requests;
    input.next_n = lengths_.next_n;
    input.heads = heads_;
    input.dim = dim_;
    input.max_context_len = max_context_len_;
    input.columns = padded_columns(max_context_len_);
    input.clean = clean_;
    input.q_dialect = q_dialect_;
    input.cache_dialect = dialect_;
    return input;
  }

  SequenceLengths lengths_;
  std::int64_t heads_, dim_, max_context_len_;
  reference::IndexerCacheLayout layout_;
  std::vector<reference::CacheEntry> entries_;  // of each token of a block
  BlockNumbering pool_;
  bool clean_;
  reference::Dialect q_dialect_, dialect_;
};

}  // namespace

OpDefinition define_fp8_paged_mqa_logits() {
  OpDefinition op;
  op.name = "fp8_paged_mqa_logits";
  op.summary = "lightning indexer: fp8 scores of a request's tokens in a paged cache";
  op.parameters = {{"requests", 4, 1, 4096, "padded batch"},
                   {"next_n", 1, 1, 16, "query rows per request"},
                   {"context_lens_dims", 2, 1, 2, "1: one length per request; 2: one per row"},
                   {"context_lens_gap", 0, 0, 1024, "elements between the lengths of two requests"},
                   {"length", 512, 1, 1 << 24, "longest context"},
                   {"length_step", 0, 0, 1 << 24, "how much shorter each further request is"},
                   {"gap", 0, 0, 1 << 24, "columns behind the longest context"},
                   {"heads", 64, 1, 64, "indexer heads"},
                   {"dim", 128, 16, 128, "dimensions of a head"},
                   {"page", 64, 1, 4096, "tokens of a block"},
                   {"block_gap", 0, 0, 1 << 24, "bytes between two blocks, a multiple of 4"},
                   {"blocks", 0, 0, 1 << 30, "of the cache; 0: what the requests need"},
                   {"clean", 0, 0, 1, "1: columns from the length on are -inf; needs 1-D lengths"},
                   {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the cache"}};
  op.word_parameters = {"layout", "q_dialect", "dialect"};
  op.make_problem = [](const Row& row,
                       const device::Properties& platform) -> std::unique_ptr<Problem> {
    return std::make_unique<Fp8PagedMqaLogitsProblem>(row, platform);
  };
  return op;
}

}  // namespace plumb::cases
