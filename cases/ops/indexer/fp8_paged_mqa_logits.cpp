// SPDX-License-Identifier: Apache-2.0
//
// Cases of fp8_paged_mqa_logits: next_n rows per request over a paged cache (paged_contexts.h). The
// batch has live and padded requests. Poison of the cache is NaN.
#include "reference/indexer/fp8_paged_mqa_logits.h"

#include <fmt/format.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cases/ops/indexer/indexer_inputs.h"
#include "cases/ops/indexer/key_cache.h"
#include "cases/ops/indexer/paged_contexts.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"
#include "reference/indexer/paged_mqa_logits_metadata.h"

namespace plumb::cases {

namespace fp8_paged_mqa_logits_cases {

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
        contexts_(row, p_.cache.block_stride_bytes),
        layout_{p_.cache.page, p_.dim, p_.dim, p_.shuffled != 0},
        q_dialect_(dialect_of(row, "q_dialect", platform)),
        dialect_(dialect_of(row, "dialect", platform)) {
    if (!layout_.has_whole_tiles()) {
      throw BadRow(row.where + ": the shuffled layout has tiles of 16 tokens by 16 bytes");
    }
    for (std::int64_t i = 0; i < layout_.page; ++i) {
      entries_.push_back(indexer_k_entry(layout_, i));
    }
    check_schedule_of(row);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(p_.dim));
    const auto write = [&](std::int64_t request, std::int64_t position, std::int64_t token,
                           std::uint8_t* block) {
      const KeyFill keys{step, mix(mix(step.seed, 25), request), p_.dim, dialect_};
      const float scale = keys.write(position, codes.data());
      const reference::CacheEntry& entry = entries_[static_cast<std::size_t>(token)];
      for (std::size_t d = 0; d < codes.size(); ++d) block[entry.codes[d]] = codes[d];
      std::memcpy(block + entry.scales.front(), &scale, sizeof scale);
    };
    contexts_.fill(step, tensors.at("context_lens"), tensors.at("block_table"), tensors.at("cache"),
                   {[&](std::uint8_t* block) { poison(block); }, write});
    fill_queries(step, step.live * p_.next_n, q_dialect_, tensors.at("q"), tensors.at("weights"));
    if (p_.slots > 0) fill_schedule(step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const HostTensor& logits = tensors.at("logits");
    const std::vector<std::int32_t> table =
        host_block_table(contexts_.pool, tensors.at("block_table"));
    reference::Fp8PagedMqaLogits input = reference_input(tensors);
    input.block_table = table.data();
    contexts_.check(input);
    reference::Estimate expected = reference::fp8_paged_mqa_logits(input, numerics);
    expected.structured = step.fill != Fill::real;
    return {expect_floats(logits, std::move(expected), {},
                          groups_of(contexts_.rows(), p_.next_n, "request"),
                          promised_columns(tensors, logits.spec()))};
  }

  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec&) const override {
    return contexts_.promised_columns(reference_input(tensors));
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
    if (spec.name == "cache") contexts_.pool.place(spec);
  }

  double of_requests(double (*of_rows)(std::int64_t, std::int64_t, std::int64_t,
                                       std::int64_t)) const {
    return contexts_.of_requests(of_rows, p_.heads, p_.dim);
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
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      work.lengths.push_back(context_length(input, (request + 1) * p_.next_n - 1));
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

  void poison(std::uint8_t* block) const {
    constexpr std::uint8_t kNanByteOfFloat = 0xff;
    const std::int64_t values = layout_.page * p_.dim;
    std::fill(block, block + values, reference::e4m3_nan_code(dialect_));
    std::fill(block + values, block + p_.cache.block_stride_bytes, kNanByteOfFloat);
  }

  reference::Fp8PagedMqaLogits reference_input(const TensorSet& tensors) const {
    reference::Fp8PagedMqaLogits input;
    contexts_.set_rows(p_, tensors, input);
    input.q = tensors.at("q").data<std::uint8_t>();
    input.layout = layout_;
    input.scaled_keys = p_.scaled == PLUMB_SCALED_OPERAND;
    input.q_dialect = q_dialect_;
    input.cache_dialect = dialect_;
    return input;
  }

  PagedContexts contexts_;
  reference::IndexerCacheLayout layout_;
  std::vector<reference::CacheEntry> entries_ = {};  // where each token of a block lies in it
  reference::Dialect q_dialect_, dialect_;
};

}  // namespace fp8_paged_mqa_logits_cases

OpDefinition define_fp8_paged_mqa_logits() {
  using namespace fp8_paged_mqa_logits_cases;
  OpDefinition op;
  op.name = "fp8_paged_mqa_logits";
  op.summary = "lightning indexer: fp8 scores of a request's tokens in a paged cache";
  op.parameters = paged_logits_parameters();
  const std::vector<Parameter> more = {
      {"dim", 128, 16, 128, "dimensions of a head"},
      {"slots", 0, 0, 4096, "of the schedule; 0: the kernel has none"},
      {"split_kv", 256, 1, 65536, "tokens of a segment of the schedule"},
      {"atoms", 1, 1, 16, "groups of query rows of a request in the schedule"},
      {"schedule_gap", 0, 0, 1 << 20, "elements between two entries of the schedule"}};
  op.parameters.insert(op.parameters.end(), more.begin(), more.end());
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
