// SPDX-License-Identifier: Apache-2.0
//
// Cases of fp8_paged_mqa_logits: next_n rows per request over a paged cache whose blocks are
// permuted anew in every step. The batch has live and padded requests. Every byte of the cache that
// belongs to no token is NaN, and so is all of block 0. Table entries that no token needs name
// block 0 or a block of another request.
#include "reference/indexer/fp8_paged_mqa_logits.h"

#include <fmt/format.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cases/ops/indexer/indexer_inputs.h"
#include "cases/ops/indexer/key_cache.h"
#include "cases/ops/metadata/sequence_lengths.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"
#include "reference/indexer/paged_mqa_logits_metadata.h"

namespace plumb::cases {

namespace fp8_paged_mqa_logits_cases {

constexpr std::int64_t kSpareBlocks = 3;  // entries of a block table that no token needs

using P = plumb_fp8_paged_mqa_logits_params;

void add_variant(TablePart<P>& t) {
  t.word("shuffled", &P::shuffled, {"layout", {{"planar", 0}, {"shuffled", 1}}});
  t.scalar("clean_logits", &P::clean_logits, parameter("clean"));
  t.word("q_dialect", &P::q_dialect, dialect_words("q_dialect"));
  t.choice("scaled", &P::scaled, kScaledKeys);
}

// Of paged_mqa_logits_metadata. Rows without slots have none.
void add_schedule(TablePart<P>& call) {
  const Formula slots = call.scalar("slots", &P::slots);
  TablePart<P> t = call.when(slots);
  t.scalar("split_kv", &P::split_kv);
  t.scalar("atoms", &P::atoms);
  const Formula stride =
      t.scalar("schedule_row_stride", &P::schedule_row_stride, parameter("schedule_gap") + 2);
  t.input("schedule", &P::schedule, {slots + 1, 2}, "atom and segment at which each slot begins")
      .strides({stride, 1});
}

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula next_n = t.scalar("next_n", &P::next_n), heads = t.scalar("heads", &P::heads);
  const Formula dim = t.scalar("dim", &P::dim), rows = requests * next_n;
  auto cache = t.part("cache", &P::cache);
  const Formula page = cache.scalar("page", &plumb_paged_cache::page);
  t.given(parameter("gap"), 0);
  const Formula columns =
      t.scalar("max_context_len", &P::max_context_len, parameter("length") + parameter("gap"));
  const Formula stride =
      t.caller_scalar("logits_row_stride", &P::logits_row_stride, padded_columns(columns));
  const Formula table = t.caller_scalar("block_table_row_stride", &P::block_table_row_stride,
                                        div_up(parameter("length"), page) + kSpareBlocks);
  const Formula dims = t.scalar("context_lens_dims", &P::context_lens_dims);
  const Formula lens = (dims - 1) * (next_n - 1) + 1;
  const Formula lens_stride = t.scalar("context_lens_row_stride", &P::context_lens_row_stride,
                                       lens + parameter("context_lens_gap"));
  add_variant(t);
  t.input("q", &P::q, {requests, next_n, heads, dim}, "codes");
  t.input("weights", &P::weights, {rows, heads}, "of each head");
  t.input("context_lens", &P::context_lens, {requests, lens}, "of each request or each row")
      .strides({lens_stride, 1});
  t.input("block_table", &P::block_table, {requests, table}, "blocks of each request");
  add_key_cache(cache, page * (dim + 4) + parameter("block_gap"));
  add_schedule(t);
  t.output("logits", &P::logits, {rows, stride}, "scores; columns behind the context are padding");
  return requests;
}

class Fp8PagedMqaLogitsProblem final : public TableProblem<P> {
 public:
  Fp8PagedMqaLogitsProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        lengths_(sequence_lengths(row, "context_lens_dims", "context_lens_gap")),
        layout_{p_.cache.page, p_.dim, p_.dim, p_.shuffled != 0},
        pool_(key_cache_blocks(row, p_.cache.block_stride_bytes)),
        q_dialect_(dialect_of(row, "q_dialect", platform)),
        dialect_(dialect_of(row, "dialect", platform)) {
    if (!layout_.has_whole_tiles()) {
      throw BadRow(row.where + ": the shuffled layout has tiles of 16 tokens by 16 bytes");
    }
    for (std::int64_t i = 0; i < layout_.page; ++i) {
      entries_.push_back(indexer_k_entry(layout_, i));
    }
    if (p_.cache.block_stride_bytes % 4 != 0) {
      throw BadRow(fmt::format("{}: a block takes {} bytes, which 4 does not divide", row.where,
                               p_.cache.block_stride_bytes));
    }
    if (p_.clean_logits != 0 && lengths_.dims == 2) {
      throw BadRow(fmt::format("{}: logits by 2-D lengths cannot be clean", row.where));
    }
    check_schedule_of(row);
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
        std::fill(table, table + p_.block_table_row_stride, 0);
      }
    }
    fill_queries(step, step.live * lengths_.next_n, q_dialect_, tensors.at("q"),
                 tensors.at("weights"));
    if (p_.slots > 0) fill_schedule(step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const HostTensor& logits = tensors.at("logits");
    const std::vector<std::int32_t> table = host_block_table(pool_, tensors.at("block_table"));
    reference::Fp8PagedMqaLogits input = reference_input(tensors);
    input.block_table = table.data();
    check_blocks_of_rows(input);
    reference::Estimate expected = reference::fp8_paged_mqa_logits(input, numerics);
    expected.structured = step.fill != Fill::real;
    return {expect_floats(logits, std::move(expected), {},
                          groups_of(rows(), lengths_.next_n, "request"),
                          promised_columns(tensors, logits.spec()))};
  }

  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec&) const override {
    const reference::Fp8PagedMqaLogits input = reference_input(tensors);
    ColumnRanges ranges;
    for (std::int64_t row = 0; row < rows(); ++row) {
      ranges.push_back({0, p_.clean_logits != 0 ? p_.max_context_len : context_length(input, row)});
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
  void place(TensorSpec& spec) const override {
    if (spec.name == "cache") pool_.place(spec);
  }

  void check_schedule_of(const Row& row) const {
    if (p_.slots == 0) return;
    if (p_.clean_logits != 0 || p_.next_n % p_.atoms != 0) {
      throw BadRow(
          fmt::format("{}: with a schedule logits are not clean, and {} atoms divide the "
                      "{} query rows of a request",
                      row.where, p_.atoms, p_.next_n));
    }
  }

  // Of either planner of DeepGEMM, as the seed says.
  void fill_schedule(const Step& step, TensorSet& tensors) const {
    reference::PagedMqaWork work{{}, p_.split_kv, p_.atoms, p_.slots};
    const reference::Fp8PagedMqaLogits input = reference_input(tensors);
    for (std::int64_t request = 0; request < lengths_.requests; ++request) {
      work.lengths.push_back(context_length(input, (request + 1) * lengths_.next_n - 1));
    }
    const bool last = integer(mix(step.seed, 26), 0, 0, 1) != 0;
    const reference::Schedule schedule = paged_mqa_schedule(
        work, last ? reference::LargerSlots::last : reference::LargerSlots::first);
    HostTensor& tensor = tensors.at("schedule");
    for (std::int64_t slot = 0; slot < tensor.rows(); ++slot) {
      const reference::ScheduleEntry& entry = schedule[static_cast<std::size_t>(slot)];
      tensor.row<std::int32_t>(slot)[0] = static_cast<std::int32_t>(entry.atom);
      tensor.row<std::int32_t>(slot)[1] = static_cast<std::int32_t>(entry.segment);
    }
  }

  std::int64_t rows() const { return lengths_.requests * lengths_.next_n; }
  std::int64_t blocks_per_request() const {
    return (lengths_.length + layout_.page - 1) / layout_.page;
  }
  std::int64_t needed_blocks() const { return 1 + lengths_.requests * blocks_per_request(); }

  double of_requests(double (*of_rows)(std::int64_t, std::int64_t, std::int64_t,
                                       std::int64_t)) const {
    double work = 0;
    for (std::int64_t request = 0; request < lengths_.requests; ++request) {
      const std::int64_t length = lengths_.length - lengths_.length_step * request;
      work += of_rows(lengths_.next_n, std::max<std::int64_t>(0, length), p_.heads, p_.dim);
    }
    return work;
  }

  void poison(HostTensor& cache, std::int64_t block) const {
    constexpr std::uint8_t kNanByteOfFloat = 0xff;
    auto* bytes = cache.row<std::uint8_t>(block);
    const std::int64_t values = layout_.page * p_.dim;
    std::fill(bytes, bytes + values, reference::e4m3_nan_code(dialect_));
    std::fill(bytes + values, bytes + pool_.block_bytes, kNanByteOfFloat);
  }

  void fill_request(const Step& step, std::int64_t request, const std::vector<std::int64_t>& blocks,
                    std::int32_t* table, HostTensor& cache) const {
    const std::int64_t length = lengths_.of(step, request);
    const auto* own = &blocks[static_cast<std::size_t>(request * blocks_per_request())];
    const std::int64_t needed = (length + layout_.page - 1) / layout_.page;
    for (std::int64_t i = 0; i < p_.block_table_row_stride; ++i) {
      const std::int64_t block = i < needed ? own[i] : i % 2 == 0 ? 0 : blocks.front();
      table[i] = static_cast<std::int32_t>(pool_.address(block));
    }
    const KeyFill keys{step, mix(mix(step.seed, 25), request), p_.dim, dialect_};
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(p_.dim));
    for (std::int64_t position = 0; position < length; ++position) {
      const float scale = keys.write(position, codes.data());
      auto* block = cache.row<std::uint8_t>(own[position / layout_.page]);
      const reference::CacheEntry& entry =
          entries_[static_cast<std::size_t>(position % layout_.page)];
      for (std::size_t d = 0; d < codes.size(); ++d) block[entry.codes[d]] = codes[d];
      std::memcpy(block + entry.scales.front(), &scale, sizeof scale);
    }
  }

  // Throws BadRow if a row of a recorded call needs blocks or columns that do not exist.
  void check_blocks_of_rows(const reference::Fp8PagedMqaLogits& input) const {
    for (std::int64_t row = 0; row < rows(); ++row) {
      const std::int64_t length = context_length(input, row);
      const std::int64_t pages = (length + layout_.page - 1) / layout_.page;
      const std::int64_t columns = p_.clean_logits != 0 ? p_.max_context_len : input.columns;
      if (pages > input.block_table_row_stride || length > columns) {
        throw BadRow(
            fmt::format("row {} has a context of {} tokens, which its {} blocks and the {} "
                        "columns of logits do not hold",
                        row, length, input.block_table_row_stride, columns));
      }
      const std::int64_t request = row / lengths_.next_n;
      const std::int32_t* blocks = input.block_table + request * input.block_table_row_stride;
      if (std::any_of(blocks, blocks + pages, [](std::int32_t block) { return block < 0; })) {
        throw BadRow(fmt::format("a block of request {} that the cache does not have", request));
      }
    }
  }

  reference::Fp8PagedMqaLogits reference_input(const TensorSet& tensors) const {
    reference::Fp8PagedMqaLogits input;
    input.q = tensors.at("q").data<std::uint8_t>();
    input.weights = tensors.at("weights").data<float>();
    input.context_lens = tensors.at("context_lens").data<std::int32_t>();
    input.context_lens_row_stride = p_.context_lens_row_stride;
    input.context_lens_dims = p_.context_lens_dims;
    input.cache = tensors.at("cache").data<std::uint8_t>();
    input.block_stride_bytes = pool_.block_bytes;
    input.layout = layout_;
    input.block_table_row_stride = p_.block_table_row_stride;
    input.requests = lengths_.requests;
    input.next_n = lengths_.next_n;
    input.heads = p_.heads;
    input.dim = p_.dim;
    input.max_context_len = p_.max_context_len;
    input.columns = p_.logits_row_stride;
    input.clean = p_.clean_logits != 0;
    input.scaled_keys = p_.scaled == PLUMB_SCALED_OPERAND;
    input.q_dialect = q_dialect_;
    input.cache_dialect = dialect_;
    return input;
  }

  SequenceLengths lengths_;
  reference::IndexerCacheLayout layout_;
  std::vector<reference::CacheEntry> entries_ = {};  // where each token of a block lies in it
  BlockNumbering pool_;
  reference::Dialect q_dialect_, dialect_;
};

}  // namespace fp8_paged_mqa_logits_cases

OpDefinition define_fp8_paged_mqa_logits() {
  using namespace fp8_paged_mqa_logits_cases;
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
                   {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the cache"},
                   {"slots", 0, 0, 4096, "of the schedule; 0: the kernel has none"},
                   {"split_kv", 256, 1, 65536, "tokens of a segment of the schedule"},
                   {"atoms", 1, 1, 16, "groups of query rows of a request in the schedule"},
                   {"schedule_gap", 0, 0, 1 << 20, "elements between two entries of the schedule"}};
  op.word_parameters = {
      {"layout", {"planar", "shuffled"}, "of the keys in a block: row after row, or AITER's tiles"},
      dialect_word("q_dialect", "of the queries; else the platform's"),
      dialect_word("dialect", "of the keys; else the platform's")};
  op.choices = {kScaledKeys};
  op.make_problem = make_problem_of<Fp8PagedMqaLogitsProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
