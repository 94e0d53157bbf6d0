// SPDX-License-Identifier: Apache-2.0
//
// Cases of dequantize_and_gather_k_cache: capacity and live count are requests.
#include "reference/sparse_mla/dequantize_and_gather_k_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/ops/sparse_mla/mla_rows.h"
#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

using reference::kMlaDim;

enum class SeqLens { full, edges, random };
enum class GatherLens { all, window, random };  // all: none are given
enum GatherSalt : std::uint64_t { kCache = 1, kLengths, kWindows, kStale, kTable };

struct GatherShape {
  std::int64_t requests = 1, most = 1, window = 1, offset = 0, rows = 1;
  SeqLens seq_lens = SeqLens::full;
  GatherLens gather_lens = GatherLens::all;
  bool strided = false;
  MlaSide cache;

  std::int64_t pages() const { return cache.cache.blocks_per_sequence(); }
  std::int64_t needed_rows() const {
    return offset + (gather_lens == GatherLens::all ? most : std::min(most, window));
  }
};

// Lengths at which pages turn.
std::int64_t edge_length(const GatherShape& shape, std::uint64_t which) {
  const std::int64_t page = shape.cache.cache.page;
  const std::int64_t edges[] = {0, shape.most, page, 1, page + 1, page - 1, 2 * page, 17};
  return std::min(edges[which % std::size(edges)], shape.most);
}

class GatherProblem : public Problem {
 public:
  explicit GatherProblem(GatherShape shape) : shape_(std::move(shape)) {
    layouts_.add(shape_.cache.cache.spec("k_cache"));
    const std::int64_t gap = shape_.strided ? 3 : 0;
    layouts_.add({.name = "block_table",
                  .dtype = Dtype::i32,
                  .shape = {shape_.requests, shape_.pages()},
                  .strides = {shape_.pages() + gap, 1}});
    layouts_.add({.name = "seq_lens", .dtype = Dtype::i32, .shape = {shape_.requests}});
    if (shape_.gather_lens != GatherLens::all) {
      layouts_.add({.name = "gather_lens", .dtype = Dtype::i32, .shape = {shape_.requests}});
    }
    const std::int64_t row = kMlaDim + (shape_.strided ? 8 : 0);
    TensorSpec workspace{.name = "workspace_before",
                         .dtype = Dtype::bf16,
                         .shape = {shape_.requests, shape_.rows, kMlaDim},
                         .strides = {shape_.rows * row + 8 * gap, row, 1}};
    layouts_.add(workspace);
    workspace.name = "workspace";
    workspace.role = Role::output;
    workspace.starts_as = "workspace_before";
    layouts_.add(workspace);
  }

  std::int64_t capacity() const override { return shape_.requests; }
  TensorSet make_tensors() const override { return layouts_; }

  void fill(const Step& step, TensorSet& tensors) const override {
    if (shape_.rows < shape_.needed_rows()) {
      throw BadRow(fmt::format("a workspace of {} rows a request: its tokens need {}", shape_.rows,
                               shape_.needed_rows()));
    }
    MlaCache cache(shape_.cache.cache, step, mix(step.seed, kCache), tensors.at("k_cache"));
    for (std::int64_t request = 0; request < step.live; ++request) {
      fill_request(step, request, cache, tensors);
    }
    for (std::int64_t request = step.live; request < shape_.requests; ++request) {
      fill_dead_request(step, request, tensors);
    }
    const RealFill how{.scale = 1, .vary_rows = false, .outliers = false};
    HostTensor& before = tensors.at("workspace_before");
    fill_real(before, 0, before.rows(), mix(step.seed, kStale), how);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_dequantize_and_gather_k_cache_params params{};
    params.cache = device_cache(shape_.cache, tensors);
    params.block_table = tensors.get<std::int32_t>("block_table");
    params.seq_lens = tensors.get<std::int32_t>("seq_lens");
    params.gather_lens = tensors.get<std::int32_t>("gather_lens");
    params.out = tensors.get<std::uint16_t>("workspace");
    params.requests = shape_.requests;
    params.rows = shape_.rows;
    params.pages = shape_.pages();
    params.offset = shape_.offset;
    const std::vector<std::int64_t>& strides = layouts_.at("workspace").spec().strides;
    params.out_request_stride = strides[0];
    params.out_row_stride = strides[1];
    params.block_table_stride = layouts_.at("block_table").spec().strides[0];
    params.stream = stream;
    return entry.launch(&params);
  }

  // Bit for bit, except where several bits are right.
  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    const reference::GatheredWorkspace right = expected(tensors);
    const HostTensor& got = tensors.at("workspace");
    HostTensor wanted = tensors.at("workspace_before");
    for (std::int64_t row = 0; row < got.rows(); ++row) {
      if (!right.written[static_cast<std::size_t>(row)]) continue;
      const auto* stored = got.row<std::uint16_t>(row);
      auto* bits = wanted.row<std::uint16_t>(row);
      for (std::int64_t d = 0; d < kMlaDim; ++d) {
        const double value = right.values[static_cast<std::size_t>(row * kMlaDim + d)];
        bits[d] =
            reference::is_bf16_of(stored[d], value) ? stored[d] : reference::encode_bf16(value);
      }
    }
    return {judge_bits(got, wanted, {}, "wrong")};
  }

  double cost() const override {
    constexpr double kDecode = 0.5, kThread = 20;
    const std::int64_t tokens =
        shape_.gather_lens == GatherLens::window ? shape_.window : shape_.most;
    const std::int64_t threads = shape_.requests * (shape_.rows + 15) / 16 * 128;
    return kDecode * static_cast<double>(shape_.requests * tokens * kMlaDim) +
           kThread * static_cast<double>(threads);
  }
  double checked_factor() const override { return 20; }

 private:
  std::int64_t seq_len(const Step& step, std::int64_t request) const {
    const std::uint64_t seed = mix(step.seed, kLengths);
    switch (shape_.seq_lens) {
      case SeqLens::full: return shape_.most;
      case SeqLens::random: return integer(seed, request, 0, shape_.most);
      case SeqLens::edges:
        return edge_length(shape_, random_bits(seed, 0) + static_cast<std::uint64_t>(request));
    }
    return 0;
  }
  std::int64_t gather_len(const Step& step, std::int64_t request, std::int64_t length) const {
    const std::int64_t most = std::min(length, shape_.window);
    switch (shape_.gather_lens) {
      case GatherLens::all: return length;
      case GatherLens::window: return most;
      case GatherLens::random: return integer(mix(step.seed, kWindows), request, 0, most);
    }
    return 0;
  }

  // Tokens before the window stay NaN, and pages without a token in it name any block.
  void fill_request(const Step& step, std::int64_t request, MlaCache& cache,
                    TensorSet& tensors) const {
    const std::int64_t page = shape_.cache.cache.page;
    const std::int64_t length = seq_len(step, request), count = gather_len(step, request, length);
    tensors.at("seq_lens").data<std::int32_t>()[request] = static_cast<std::int32_t>(length);
    if (tensors.contains("gather_lens")) {
      tensors.at("gather_lens").data<std::int32_t>()[request] = static_cast<std::int32_t>(count);
    }
    auto* blocks = tensors.at("block_table").row<std::int32_t>(request);
    const std::uint64_t seed = mix(mix(step.seed, kTable), static_cast<std::uint64_t>(request));
    for (std::int64_t i = 0; i < shape_.pages(); ++i) {
      const std::int64_t block = integer(seed, i, 0, shape_.cache.cache.blocks() - 1);
      blocks[i] = static_cast<std::int32_t>(shape_.cache.cache.address(block));
    }
    for (std::int64_t position = length - count; position < length; ++position) {
      blocks[position / page] = static_cast<std::int32_t>(cache.use(request, position) / page);
    }
  }

  // Nothing is gathered for a dead request. Where that stands in gather_lens, its length is stale.
  void fill_dead_request(const Step& step, std::int64_t request, TensorSet& tensors) const {
    auto& length = tensors.at("seq_lens").data<std::int32_t>()[request];
    if (!tensors.contains("gather_lens")) {
      length = 0;
      return;
    }
    tensors.at("gather_lens").data<std::int32_t>()[request] = 0;
    if (step.dead_rows != DeadRows::foreign) length = static_cast<std::int32_t>(shape_.most);
  }

  // Blocks of a far cache are numbered as the host holds them.
  reference::GatheredWorkspace expected(const TensorSet& tensors) const {
    const MlaCacheShape& cache = shape_.cache.cache;
    const HostTensor& table = tensors.at("block_table");
    std::vector<std::int32_t> blocks;
    for (std::int64_t request = 0; request < shape_.requests; ++request) {
      for (std::int64_t i = 0; i < shape_.pages(); ++i) {
        const std::int64_t slot = table.row<std::int32_t>(request)[i] * cache.page;
        blocks.push_back(static_cast<std::int32_t>(cache.pool_slot(slot) / cache.page));
      }
    }
    reference::KCacheGather inputs;
    inputs.cache = {.data = tensors.at("k_cache").data<std::uint8_t>(),
                    .block_stride_bytes = cache.block_bytes(),
                    .num_blocks = cache.blocks(),
                    .page = cache.page,
                    .dialect = cache.dialect};
    inputs.block_table = blocks.data();
    inputs.block_table_stride = shape_.pages();
    inputs.seq_lens = tensors.at("seq_lens").data<std::int32_t>();
    if (tensors.contains("gather_lens")) {
      inputs.gather_lens = tensors.at("gather_lens").data<std::int32_t>();
    }
    inputs.requests = shape_.requests;
    inputs.rows = shape_.rows;
    inputs.offset = shape_.offset;
    return reference::dequantize_and_gather_k_cache(inputs);
  }

  GatherShape shape_;
  TensorSet layouts_;
};

GatherShape shape_of(const Row& row, const device::Properties& platform) {
  GatherShape shape;
  shape.requests = row.integer("requests");
  shape.most = row.integer("seq_len");
  shape.window = row.integer("window");
  shape.offset = row.integer("offset");
  shape.seq_lens = choose<SeqLens>(
      row, "lengths",
      {{"full", SeqLens::full}, {"edges", SeqLens::edges}, {"random", SeqLens::random}});
  shape.gather_lens = choose<GatherLens>(
      row, "gather",
      {{"all", GatherLens::all}, {"window", GatherLens::window}, {"random", GatherLens::random}});
  shape.rows = row.integer("rows");
  if (shape.rows == 0) shape.rows = shape.needed_rows() + row.integer("spare_rows");
  shape.strided = row.integer("strided") != 0;
  shape.cache.name = "k";
  shape.cache.width = shape.most;
  MlaCacheShape& cache = shape.cache.cache;
  cache.page = row.integer("page");
  cache.context = shape.most;
  cache.sequences = std::max<std::int64_t>(shape.requests, 1);
  cache.dialect = dialect_of(row, "dialect", native_dialect(platform));
  cache.far = row.integer("far") != 0;
  cache.given_blocks = row.integer("blocks");
  cache.every_code = true;
  return shape;
}

}  // namespace

OpDefinition define_dequantize_and_gather_k_cache() {
  OpDefinition op;
  op.name = "dequantize_and_gather_k_cache";
  op.summary = "tokens of a paged fp8 cache to rows of a bf16 workspace";
  op.parameters = {
      {"requests", 4, 0, 4096, "requests of a prefill chunk"},
      {"seq_len", 100, 1, 1 << 20, "longest sequence"},
      {"window", 1 << 20, 1, 1 << 20, "most tokens that are gathered of a request"},
      {"page", 64, 1, 4096, "tokens of a block"},
      {"offset", 0, 0, 1 << 20, "first row of a request's tokens in its part of the workspace"},
      {"spare_rows", 3, 0, 1 << 20, "rows of the workspace behind the longest request"},
      {"rows", 0, 0, 1 << 30, "of a request's part of the workspace; 0: what these come to"},
      {"blocks", 0, 0, 1 << 30, "of the cache; 0: what the sequences need"},
      {"strided", 0, 0, 1, "1: gaps between rows of the workspace and of the block table"},
      {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the cache"}};
  op.word_parameters = {"lengths", "gather", "dialect"};
  op.make_problem = [](const Row& row,
                       const device::Properties& platform) -> std::unique_ptr<Problem> {
    return std::make_unique<GatherProblem>(shape_of(row, platform));
  };
  return op;
}

}  // namespace plumb::cases
