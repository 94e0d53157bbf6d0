// SPDX-License-Identifier: Apache-2.0
//
// Cases of cp_gather_indexer_k_quant_cache. The batch has live and padded requests. The cache holds
// random bytes, so that every code occurs, NaN too. The output starts with other random bytes,
// which rows that are not written must keep.
#include "reference/indexer/cp_gather_indexer_k_quant_cache.h"

#include <fmt/format.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cases/ops/cache/cache_pool.h"
#include "cases/ops/indexer/key_cache.h"
#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace cp_gather_indexer_k_quant_cache_cases {

enum KeyGatherSalt : std::uint64_t { kCache = 1, kLengths, kBlocks, kRequests, kBefore };

using P = plumb_cp_gather_indexer_k_quant_cache_params;

// cu_seq_lens: vLLM's CUDA kernel. token_to_seq: vLLM's Triton kernel for ROCm.
const ContractChoice kRequestOfKey{
    "request_of_key",
    {"cu_seq_lens", "token_to_seq"},
    "what names the request of a row: the range that it is in, or token_to_seq, which leaves out "
    "rows that are in the range of no request or of another one"};

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests), length = parameter("length");
  const Formula head_dim = t.scalar("head_dim", &P::head_dim);
  const Formula quant_block =
      t.scalar("quant_block_size", &P::quant_block_size, parameter("quant_block"));
  t.word("shuffled", &P::shuffled, {"layout", {{"planar", 0}, {"shuffled", 1}}});
  t.choice("request_of_key", &P::request_of_key, kRequestOfKey);
  auto cache = t.part("cache", &P::cache);
  const Formula page = cache.scalar("page", &plumb_paged_cache::page);
  const Formula pages = t.scalar("pages", &P::pages, div_up(length, page));
  const Formula keys = t.scalar("keys", &P::keys,
                                or_else(parameter("keys"), requests * length + parameter("spare")));
  const Formula table_stride = t.scalar("block_table_row_stride", &P::block_table_row_stride,
                                        pages + parameter("table_gap"));
  const Formula scale_bytes = div_up(head_dim, quant_block) * 4;
  add_key_cache(cache, page * (head_dim + scale_bytes) + parameter("block_gap"));
  t.input("block_table", &P::block_table, {requests, pages}, "blocks of each request")
      .strides({table_stride, 1});
  t.input("cu_seq_lens", &P::cu_seq_lens, {requests + 1, 1}, "first row of each request");
  t.input("token_to_seq", &P::token_to_seq, {keys, 1}, "request of each row, or none")
      .when(word_is("request_of_key", "token_to_seq"));
  t.in_place("k", &P::k, {keys, head_dim}, "codes; rows of no request are kept");
  t.strides({{"k_row_stride", &P::k_row_stride}});
  t.in_place("k_scale", &P::k_scale, {keys, scale_bytes}, "bytes of the scales, the same rows");
  t.strides({{"k_scale_row_stride", &P::k_scale_row_stride}});
  return requests;
}

class IndexerKeyGatherProblem final : public TableProblem<P> {
 public:
  IndexerKeyGatherProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        longest_(row.integer("length")),
        lengths_(row.word("lengths")),
        layout_{p_.cache.page, p_.head_dim, p_.quant_block_size, p_.shuffled != 0},
        pool_(key_cache_blocks(row, p_.cache.block_stride_bytes)) {
    if (p_.head_dim % p_.quant_block_size != 0) {
      throw BadRow(row.where + ": quant_block has to divide head_dim");
    }
    if (!layout_.has_whole_tiles()) {
      throw BadRow(row.where + ": the shuffled layout has tiles of 16 tokens by 16 bytes");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    check_blocks(pool_.blocks, 1 + p_.requests * p_.pages);
    if (p_.keys < p_.requests * longest_) {
      throw BadRow(
          fmt::format("{} rows, and {} requests of {} keys", p_.keys, p_.requests, longest_));
    }
    fill_bytes(tensors.at("cache"), mix(step.seed, kCache));
    fill_bytes(tensors.at("k_before"), mix(step.seed, kBefore));
    fill_bytes(tensors.at("k_scale_before"), mix(step.seed, kBefore + 1));
    auto* starts = tensors.at("cu_seq_lens").data<std::int32_t>();
    starts[0] = 0;
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      const std::int64_t length = request < step.live ? length_of(step, request) : 0;
      starts[request + 1] = static_cast<std::int32_t>(starts[request] + length);
      if (request < step.live) fill_blocks(step, request, length, tensors.at("block_table"));
    }
    fill_dead_integers(tensors.at("block_table"), step.live, p_.requests, step.dead_rows);
    if (tensors.contains("token_to_seq")) fill_requests(step, tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const std::vector<std::int32_t> blocks = host_block_table(pool_, tensors.at("block_table"));
    const reference::IndexerKeyGather inputs = inputs_of(tensors, blocks);
    check(inputs);
    const reference::GatheredIndexerKeys right = cp_gather_indexer_k_quant_cache(inputs);
    return {expect_bytes(tensors, "k", right.codes, right.written),
            expect_bytes(tensors, "k_scale", right.scales, right.written)};
  }

  double cost() const override {
    constexpr double kThread = 60, kByte = 4;
    const auto keys = static_cast<double>(p_.keys);
    return keys * (8 * kThread + kByte * static_cast<double>(p_.head_dim + 4 * layout_.groups()));
  }
  double checked_factor() const override { return 20; }

 private:
  void place(TensorSpec& spec) const override {
    if (spec.name == "cache") pool_.place(spec);
  }

  std::int64_t length_of(const Step& step, std::int64_t request) const {
    if (lengths_ != "edges" && lengths_ != "random") return longest_;
    const std::uint64_t seed = mix(step.seed, kLengths);
    if (lengths_ == "random") return integer(seed, request, 0, longest_);
    const std::int64_t page = layout_.page;
    const std::int64_t edges[] = {page, 0, longest_, 1, page + 1, 0, 0, page - 1, 2 * page};
    const std::uint64_t first = random_bits(seed, 0) % std::size(edges);
    return std::min(edges[(first + static_cast<std::uint64_t>(request)) % std::size(edges)],
                    longest_);
  }

  // Table entries that no key needs are negative and name no block.
  void fill_blocks(const Step& step, std::int64_t request, std::int64_t length,
                   HostTensor& table) const {
    const std::vector<std::int64_t> blocks = permuted_blocks(pool_.blocks, mix(step.seed, kBlocks));
    auto* entries = table.row<std::int32_t>(request);
    for (std::int64_t i = 0; i < p_.pages; ++i) {
      const std::int64_t block = blocks[static_cast<std::size_t>(request * p_.pages + i)];
      const bool needed = i * layout_.page < length;
      entries[i] = static_cast<std::int32_t>(needed ? pool_.address(block) : -1 - block % 2);
    }
  }

  // Exact fill: token_to_seq names the request of each row. Other fills: for one row in seven it
  // names no request, or one whose range does not have the row.
  void fill_requests(const Step& step, TensorSet& tensors) const {
    const auto* starts = tensors.at("cu_seq_lens").data<std::int32_t>();
    auto* requests = tensors.at("token_to_seq").data<std::int32_t>();
    const std::uint64_t seed = mix(step.seed, kRequests);
    const auto last = static_cast<std::int32_t>(p_.requests);
    const std::int32_t others[] = {-1, last, last - 1, 0, INT32_MAX, INT32_MIN};
    std::int32_t request = 0;
    for (std::int64_t key = 0; key < p_.keys; ++key) {
      while (request < last && starts[request + 1] <= key) ++request;
      const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(key));
      const bool hole = step.fill != Fill::exact && bits % 7 == 0;
      requests[key] = request == last || hole ? others[(bits >> 8) % std::size(others)] : request;
    }
  }

  reference::IndexerKeyGather inputs_of(const TensorSet& tensors,
                                        const std::vector<std::int32_t>& blocks) const {
    reference::IndexerKeyGather inputs;
    inputs.cache = tensors.at("cache").data<std::uint8_t>();
    inputs.block_stride_bytes = p_.cache.block_stride_bytes;
    inputs.layout = layout_;
    inputs.block_table = blocks.data();
    inputs.block_table_row_stride = p_.pages;
    inputs.cu_seq_lens = tensors.at("cu_seq_lens").data<std::int32_t>();
    if (tensors.contains("token_to_seq")) {
      inputs.token_to_seq = tensors.at("token_to_seq").data<std::int32_t>();
    }
    inputs.requests = p_.requests;
    inputs.keys = p_.keys;
    return inputs;
  }

  // Throws BadRow if the ranges of a recorded call do not fit into the rows, the block table and
  // the cache.
  void check(const reference::IndexerKeyGather& inputs) const {
    const std::int32_t* starts = inputs.cu_seq_lens;
    if (starts[0] != 0) throw BadRow("cu_seq_lens does not begin with 0");
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      const std::int64_t length = std::int64_t{starts[request + 1]} - starts[request];
      const std::int64_t pages = (length + layout_.page - 1) / layout_.page;
      if (length < 0 || starts[request + 1] > p_.keys || pages > p_.pages) {
        throw BadRow(fmt::format("request {} has rows [{}, {}) of {}, and {} blocks", request,
                                 starts[request], starts[request + 1], p_.keys, p_.pages));
      }
      const std::int32_t* blocks = inputs.block_table + request * p_.pages;
      if (std::any_of(blocks, blocks + pages, [](std::int32_t block) { return block < 0; })) {
        throw BadRow(fmt::format("a block of request {} that the cache does not have", request));
      }
    }
  }

  static Expectation expect_bytes(const TensorSet& tensors, const std::string& name,
                                  const std::vector<std::uint8_t>& bytes,
                                  const std::vector<bool>& written) {
    HostTensor wanted = tensors.at(name + "_before");
    for (std::int64_t key = 0; key < wanted.rows(); ++key) {
      if (!written[static_cast<std::size_t>(key)]) continue;
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(key * wanted.columns());
      std::copy_n(from, wanted.columns(), wanted.row<std::uint8_t>(key));
    }
    return expect_bits(tensors.at(name), std::move(wanted), {}, "wrong");
  }

  std::int64_t longest_;
  std::string lengths_;
  reference::IndexerCacheLayout layout_;
  BlockNumbering pool_;
};

}  // namespace cp_gather_indexer_k_quant_cache_cases

OpDefinition define_cp_gather_indexer_k_quant_cache() {
  using namespace cp_gather_indexer_k_quant_cache_cases;
  OpDefinition op;
  op.name = "cp_gather_indexer_k_quant_cache";
  op.summary = "keys of requests out of the indexer's paged cache, side by side";
  op.parameters = {{"requests", 4, 0, 65536, "padded requests"},
                   {"length", 100, 1, 1 << 24, "most keys of a request"},
                   {"spare", 3, 0, 1 << 20, "rows of the output behind those of full requests"},
                   {"keys", 0, 0, 1 << 30, "rows of the output; 0: what these come to"},
                   {"head_dim", 128, 1, 4096, "columns of a key"},
                   {"quant_block", 128, 1, 4096, "columns under one scale"},
                   {"page", 64, 1, 4096, "tokens of a block"},
                   {"block_gap", 0, 0, 1 << 24, "bytes between two blocks"},
                   {"table_gap", 0, 0, 1 << 20, "elements between rows of the block table"},
                   {"blocks", 0, 0, 1 << 30, "of the cache; 0: what the requests need"},
                   {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the cache"},
                   kOutGap};
  op.word_parameters = {
      {"lengths", {"full", "edges", "random"}, "of the requests: length, around pages, any"},
      {"layout", {"planar", "shuffled"}, "of the keys in a block: row after row, or AITER's tiles"},
      dialect_word("dialect", "of the keys; else the platform's")};
  op.choices = {kRequestOfKey};
  op.make_problem = make_problem_of<IndexerKeyGatherProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
