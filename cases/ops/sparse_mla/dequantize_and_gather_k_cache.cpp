// SPDX-License-Identifier: Apache-2.0
//
// Cases of dequantize_and_gather_k_cache. The batch has live and padded requests.
#include "reference/sparse_mla/dequantize_and_gather_k_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/ops/sparse_mla/mla_members.h"
#include "cases/ops/sparse_mla/mla_rows.h"
#include "cases/tables/dialect.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace dequantize_and_gather_k_cache_cases {

using reference::kMlaDim;

enum class SeqLens { full, edges, random };
enum class GatherLens { all, window, random };  // all: gather_lens is null
enum GatherSalt : std::uint64_t { kCache = 1, kLengths, kWindows, kStale, kTable };

MlaCacheShape cache_of(const Row& row) {
  MlaCacheShape cache;
  cache.page = row.integer("page");
  cache.context = row.integer("seq_len");
  cache.sequences = std::max<std::int64_t>(row.integer("requests"), 1);
  cache.far = row.integer("far") != 0;
  cache.given_blocks = row.integer("blocks");
  cache.every_code = true;
  return cache;
}

using P = plumb_dequantize_and_gather_k_cache_params;

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests), length = parameter("seq_len");
  MlaCacheMembers cache(t.part("cache", &P::cache), MlaLayouts::v4, "", dialect_words("dialect"),
                        cache_of);
  const Formula pages = t.scalar("pages", &P::pages, div_up(length, cache.page));
  t.given(word_is("gather", "window"), t.has("gather_lens", &P::gather_lens));
  const Formula all = both(!word_is("gather", "window"), !word_is("gather", "random"));
  const Formula gathered = all * length + !all * least(length, parameter("window"));
  const Formula offset = t.scalar("offset", &P::offset);
  const Formula rows = t.scalar(
      "rows", &P::rows, or_else(parameter("rows"), offset + gathered + parameter("spare_rows")));
  const Formula strided = parameter("strided");
  const Formula row_stride = t.scalar("out_row_stride", &P::out_row_stride, strided * 8 + kMlaDim);
  const Formula request_stride =
      t.scalar("out_request_stride", &P::out_request_stride, rows * row_stride + strided * 24);
  const Formula table_stride =
      t.scalar("block_table_row_stride", &P::block_table_row_stride, pages + strided * 3);
  cache.add_tensor("k_cache");
  t.input("block_table", &P::block_table, {requests, pages}, "blocks of each request")
      .strides({table_stride, 1});
  t.input("seq_lens", &P::seq_lens, {requests}, "tokens of each request");
  t.input("gather_lens", &P::gather_lens, {requests}, "the last ones, which are gathered")
      .when(!all);
  t.in_place("out", &P::out, {requests, rows, kMlaDim}, "other rows are kept")
      .named("workspace")
      .strides({request_stride, row_stride, 1});
  return requests;
}

class GatherProblem final : public TableProblem<P> {
 public:
  GatherProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        longest_(row.integer("seq_len")),
        window_(row.integer("window")),
        seq_lens_(choose<SeqLens>(
            row, "lengths",
            {{"full", SeqLens::full}, {"edges", SeqLens::edges}, {"random", SeqLens::random}})),
        gather_lens_(choose<GatherLens>(row, "gather",
                                        {{"all", GatherLens::all},
                                         {"window", GatherLens::window},
                                         {"random", GatherLens::random}})),
        side_{.name = "k", .width = longest_, .cache = cache_of(row)} {
    side_.cache.dialect = dialect_of(row, "dialect", platform);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    if (p_.rows < needed_rows()) {
      throw BadRow(fmt::format("a workspace of {} rows a request: its tokens need {}", p_.rows,
                               needed_rows()));
    }
    MlaCache cache(side_.cache, step, mix(step.seed, kCache), tensors.at("k_cache"));
    for (std::int64_t request = 0; request < step.live; ++request) {
      fill_request(step, request, cache, tensors);
    }
    for (std::int64_t request = step.live; request < p_.requests; ++request) {
      fill_dead_request(step, request, tensors);
    }
    const RealFill how{.scale = 1, .vary_rows = false, .outliers = false};
    HostTensor& before = tensors.at("workspace_before");
    fill_real(before, 0, before.rows(), mix(step.seed, kStale), how);
  }

  // Compares bit for bit. If several bf16 numbers are right and one of them is stored, that one is
  // expected.
  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
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
    return {expect_bits(got, wanted, {}, "wrong")};
  }

  double cost() const override {
    constexpr double kDecode = 0.5, kThread = 20;
    const std::int64_t tokens = gather_lens_ == GatherLens::window ? window_ : longest_;
    const std::int64_t threads = p_.requests * (p_.rows + 15) / 16 * 128;
    return kDecode * static_cast<double>(p_.requests * tokens * kMlaDim) +
           kThread * static_cast<double>(threads);
  }
  double checked_factor() const override { return 20; }

 private:
  void place(TensorSpec& spec) const override { place_mla_cache(side_, spec); }

  std::int64_t needed_rows() const {
    return p_.offset + (gather_lens_ == GatherLens::all ? longest_ : std::min(longest_, window_));
  }
  // Lengths around the ends of pages.
  std::int64_t edge_length(std::uint64_t which) const {
    const std::int64_t page = side_.cache.page;
    const std::int64_t edges[] = {0, longest_, page, 1, page + 1, page - 1, 2 * page, 17};
    return std::min(edges[which % std::size(edges)], longest_);
  }
  std::int64_t seq_len(const Step& step, std::int64_t request) const {
    const std::uint64_t seed = mix(step.seed, kLengths);
    switch (seq_lens_) {
      case SeqLens::full: return longest_;
      case SeqLens::random: return integer(seed, request, 0, longest_);
      case SeqLens::edges:
        return edge_length(random_bits(seed, 0) + static_cast<std::uint64_t>(request));
    }
    return 0;
  }
  std::int64_t gather_len(const Step& step, std::int64_t request, std::int64_t length) const {
    const std::int64_t most = std::min(length, window_);
    switch (gather_lens_) {
      case GatherLens::all: return length;
      case GatherLens::window: return most;
      case GatherLens::random: return integer(mix(step.seed, kWindows), request, 0, most);
    }
    return 0;
  }

  // Tokens before the gathered ones stay NaN. Table entries of pages without a gathered token name
  // random blocks.
  void fill_request(const Step& step, std::int64_t request, MlaCache& cache,
                    TensorSet& tensors) const {
    const std::int64_t page = side_.cache.page;
    const std::int64_t length = seq_len(step, request), count = gather_len(step, request, length);
    tensors.at("seq_lens").data<std::int32_t>()[request] = static_cast<std::int32_t>(length);
    if (tensors.contains("gather_lens")) {
      tensors.at("gather_lens").data<std::int32_t>()[request] = static_cast<std::int32_t>(count);
    }
    auto* blocks = tensors.at("block_table").row<std::int32_t>(request);
    const std::uint64_t seed = mix(mix(step.seed, kTable), static_cast<std::uint64_t>(request));
    for (std::int64_t i = 0; i < p_.pages; ++i) {
      const std::int64_t block = integer(seed, i, 0, side_.cache.blocks() - 1);
      blocks[i] = static_cast<std::int32_t>(side_.cache.address(block));
    }
    for (std::int64_t position = length - count; position < length; ++position) {
      blocks[position / page] = static_cast<std::int32_t>(cache.use(request, position) / page);
    }
  }

  // Nothing is gathered for a dead request. If the call has gather_lens, these say so and the
  // request's length is stale; otherwise its length is 0.
  void fill_dead_request(const Step& step, std::int64_t request, TensorSet& tensors) const {
    auto& length = tensors.at("seq_lens").data<std::int32_t>()[request];
    if (!tensors.contains("gather_lens")) {
      length = 0;
      return;
    }
    tensors.at("gather_lens").data<std::int32_t>()[request] = 0;
    if (step.dead_rows != DeadRows::foreign) length = static_cast<std::int32_t>(longest_);
  }

  // The expected workspace. Block numbers of the device are converted to those of the host's cache.
  reference::GatheredWorkspace expected(const TensorSet& tensors) const {
    const MlaCacheShape& cache = side_.cache;
    const HostTensor& table = tensors.at("block_table");
    std::vector<std::int32_t> blocks;
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      for (std::int64_t i = 0; i < p_.pages; ++i) {
        const std::int64_t slot = table.row<std::int32_t>(request)[i] * cache.page;
        const std::int64_t found = cache.pool_slot(slot);
        const bool is_there = found >= 0 && found < cache.blocks() * cache.page;
        blocks.push_back(static_cast<std::int32_t>(is_there ? found / cache.page : -1));
      }
    }
    reference::KCacheGather inputs;
    inputs.cache = {.data = tensors.at("k_cache").data<std::uint8_t>(),
                    .block_stride_bytes = cache.block_bytes(),
                    .num_blocks = cache.blocks(),
                    .page = cache.page,
                    .dialect = cache.dialect};
    inputs.block_table = blocks.data();
    inputs.block_table_row_stride = p_.pages;
    inputs.seq_lens = tensors.at("seq_lens").data<std::int32_t>();
    if (tensors.contains("gather_lens")) {
      inputs.gather_lens = tensors.at("gather_lens").data<std::int32_t>();
    }
    inputs.requests = p_.requests;
    inputs.rows = p_.rows;
    inputs.offset = p_.offset;
    for (std::int64_t request = 0; request < p_.requests; ++request) check(inputs, request);
    return reference::dequantize_and_gather_k_cache(inputs);
  }

  // Throws BadRow if a request of a recorded call gathers tokens that the block table, the cache or
  // the workspace does not hold.
  void check(const reference::KCacheGather& inputs, std::int64_t request) const {
    const std::int64_t length = inputs.seq_lens[request], page = inputs.cache.page;
    const std::int64_t count = inputs.gather_lens == nullptr ? length : inputs.gather_lens[request];
    if (count == 0) return;
    if (count < 0 || count > length || length > p_.pages * page || p_.offset + count > p_.rows) {
      throw BadRow(
          fmt::format("request {} gathers {} of {} tokens: its table has {} blocks, the "
                      "workspace {} rows",
                      request, count, length, p_.pages, p_.rows));
    }
    const std::int32_t* blocks = inputs.block_table + request * inputs.block_table_row_stride;
    const auto absent = [](std::int32_t block) { return block < 0; };
    if (std::any_of(blocks + (length - count) / page, blocks + (length - 1) / page + 1, absent)) {
      throw BadRow(fmt::format("a block of request {} that the cache does not have", request));
    }
  }

  std::int64_t longest_, window_;
  SeqLens seq_lens_;
  GatherLens gather_lens_;
  MlaSide side_;
};

}  // namespace dequantize_and_gather_k_cache_cases

OpDefinition define_dequantize_and_gather_k_cache() {
  using namespace dequantize_and_gather_k_cache_cases;
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
  op.word_parameters = {{"lengths",
                         {"full", "edges", "random"},
                         "of the sequences: seq_len, around block borders, any"},
                        {"gather",
                         {"all", "window", "random"},
                         "tokens of a sequence: all, its last ones, so many as gather_lens says"},
                        dialect_word()};
  op.make_problem = make_problem_of<GatherProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
