// SPDX-License-Identifier: Apache-2.0
//
// Cases of build_flashinfer_mixed_sparse_indices. The first requests of the batch decode, with the
// same number of query tokens each, and the others prefill. Padded requests come last.
#include "reference/index_maps/build_flashinfer_mixed_sparse_indices.h"

#include <plumb/ops/metadata.h>

#include <algorithm>
#include <limits>

#include "cases/ops/metadata/chosen_states.h"
#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace build_flashinfer_mixed_sparse_indices_cases {

enum MixedSalt : std::uint64_t { kSwaSlots = 1, kStates, kMissing, kValid };

constexpr std::int64_t kSlots = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;

using P = plumb_build_flashinfer_mixed_sparse_indices_params;

void add_decode_tokens(TablePart<P>& t, const Formula& tokens, const Formula& window,
                       const Formula& topk) {
  const Formula local = parameter("local"), lens = parameter("lens");
  t.given(local, t.has("decode_is_valid_token", &P::decode_is_valid_token));
  t.given(lens, t.has("decode_compressed_lens", &P::decode_compressed_lens));
  const Formula swa_stride = t.scalar("decode_swa_row_stride", &P::decode_swa_row_stride,
                                      window + parameter("decode_swa_gap"));
  const Formula stride = t.scalar("decode_compressed_row_stride", &P::decode_compressed_row_stride,
                                  topk + parameter("decode_compressed_gap"));
  t.input("decode_swa_indices", &P::decode_swa_indices, {tokens, window}, "slots; -1: none")
      .strides({swa_stride, 1});
  t.input("decode_compressed_indices", &P::decode_compressed_indices, {tokens, topk},
          "slots, or compressed positions; -1: none")
      .strides({stride, 1})
      .when(topk);
  t.input("decode_compressed_lens", &P::decode_compressed_lens, {tokens, 1}, "slots of each token")
      .when(lens);
  t.input("decode_is_valid_token", &P::decode_is_valid_token, {tokens, 1}, "0 for padding")
      .when(local);
}

void add_block_tables(TablePart<P>& t, const Formula& requests) {
  const Formula gap = parameter("table_gap"), compressed = parameter("compressed");
  t.given(gap, 0);
  t.given(compressed, t.has("compressed_block_table", &P::compressed_block_table));
  const Formula blocks = parameter("swa_blocks"), states = parameter("compressed_blocks");
  const Formula stride =
      t.scalar("swa_block_table_row_stride", &P::swa_block_table_row_stride, blocks + gap);
  const Formula compressed_stride = t.scalar("compressed_block_table_row_stride",
                                             &P::compressed_block_table_row_stride, states + gap);
  t.input("swa_block_table", &P::swa_block_table, {requests, blocks}, "blocks of each request")
      .strides({stride, 1});
  t.input("compressed_block_table", &P::compressed_block_table, {requests, states},
          "blocks of compressed states of each request")
      .strides({compressed_stride, 1})
      .when(compressed);
}

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula decode_tokens = t.scalar("decode_tokens", &P::decode_tokens);
  const Formula prefill_tokens = t.scalar("prefill_tokens", &P::prefill_tokens);
  const Formula tokens = decode_tokens + prefill_tokens;
  t.given(parameter("queries"), 1);
  t.given(parameter("missing_blocks"), 0);
  t.given(parameter("align"), 1);
  const Formula window = t.scalar("window", &P::window), top_k = t.scalar("top_k", &P::top_k);
  const Formula decode_topk = t.scalar("decode_topk", &P::decode_topk);
  t.scalar("ratio", &P::ratio);
  const Formula swa = t.scalar("swa_block_size", &P::swa_block_size);
  const Formula compressed = t.scalar("compressed_block_size", &P::compressed_block_size);
  t.scalar("swa_block_span", &P::swa_block_span, swa + parameter("swa_block_gap"));
  t.scalar("compressed_block_span", &P::compressed_block_span,
           compressed + parameter("compressed_block_gap"));
  const Formula align = parameter("align");
  const Formula states = greatest(top_k, decode_topk);
  const Formula width =
      t.scalar("width", &P::width, window + div_up(states, align) * align + parameter("spare"));
  const Formula topk_stride = t.scalar("prefill_topk_row_stride", &P::prefill_topk_row_stride,
                                       top_k + parameter("prefill_topk_gap"));
  add_queries(t, requests);
  t.input("token_to_req", &P::token_to_req, {tokens, 1}, "request of each token; 0 for padding");
  add_decode_tokens(t, decode_tokens, window, decode_topk);
  t.input("prefill_topk_indices", &P::prefill_topk_indices, {prefill_tokens, top_k},
          "compressed positions; -1: none")
      .strides({topk_stride, 1})
      .when(top_k);
  add_block_tables(t, requests);
  t.output("sparse_indices", &P::sparse_indices, {tokens, width}, "slots; -1: none");
  t.strides({{"sparse_indices_row_stride", &P::sparse_indices_row_stride}});
  t.output("sparse_topk_lens", &P::sparse_topk_lens, {tokens, 1}, "window and compressed slots");
  return requests;
}

class MixedIndicesProblem final : public TableProblem<P> {
 public:
  MixedIndicesProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        missing_blocks_(row.integer("missing_blocks") != 0) {
    swa_ = table("swa_block_table", row.integer("swa_blocks"), p_.swa_block_table_row_stride,
                 p_.swa_block_span);
    compressed_ = table("compressed_block_table", row.integer("compressed_blocks"),
                        p_.compressed_block_table_row_stride, p_.compressed_block_span);
    require_int32_slots(swa_, row.where);
    require_int32_slots(compressed_, row.where);
    set_queries(row);
    const bool local = row.integer("local") != 0, lens = row.integer("lens") != 0;
    if ((local || lens) && p_.decode_topk == 0) {
      throw BadRow(row.where + ": compressed entries of decode tokens, of which there are none");
    }
    if (local && lens) throw BadRow(row.where + ": lens is of slots, and local of positions");
    if (p_.top_k + local > 0 && row.integer("compressed") == 0) {
      throw BadRow(row.where + ": compressed positions, and no table of compressed blocks");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    check_queries();
    fill_queries(queries_, step, tensors);
    fill_block_table(swa_, step, step.live, tensors);
    if (tensors.contains("compressed_block_table")) {
      fill_block_table(compressed_, step, step.live, tensors);
    }
    if (missing_blocks_) take_blocks_away(step, tensors);
    const auto tokens =
        query_tokens(queries_.reference(tensors), p_.decode_tokens + p_.prefill_tokens);
    auto* requests = tensors.at("token_to_req").data<std::int32_t>();
    std::fill_n(requests, p_.decode_tokens + p_.prefill_tokens, 0);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      requests[i] = static_cast<std::int32_t>(tokens[i].request);
    }
    fill_decode_tokens(step, tokens, tensors);
    fill_prefill_tokens(step, tokens, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    auto expected = build_flashinfer_mixed_sparse_indices(reference_input(tensors));
    const HostTensor &indices = tensors.at("sparse_indices"),
                     &lens = tensors.at("sparse_topk_lens");
    return {expect_exact(lens, std::move(expected.lens),
                         promised_rows_by_inputs(step, tensors, lens.spec())),
            expect_slots(indices, std::move(expected.indices),
                         promised_rows_by_inputs(step, tensors, indices.spec()))};
  }

  RowMask promised_rows_by_inputs(const Step&, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    const reference::MixedBatch batch = reference_input(tensors);
    RowMask rows;
    for (std::int64_t token = 0; token < batch.tokens(); ++token) {
      const bool is_row = spec.name == "sparse_indices";
      rows.push_back(is_row ? batch.has_row(token) : batch.has_length(token));
    }
    return rows;
  }

  double cost() const override {
    return row_blocks_cost(p_.decode_tokens + p_.prefill_tokens, p_.width) +
           static_cast<double>(p_.decode_tokens) * 32 * 5 * kShuffleCost;
  }
  double checked_factor() const override { return 4; }

 private:
  BlockTableShape table(const char* name, std::int64_t columns, std::int64_t stride,
                        std::int64_t span) const {
    BlockTableShape shape{.requests = p_.requests, .columns = columns, .gap = stride - columns};
    shape.block_size = span;  // the blocks that still have slots in int32 depend on it
    shape.tensor = name;
    return shape;
  }

  // A recorded call has no `queries`, and is not filled: check_queries() looks at cases alone.
  void set_queries(const Row& row) {
    queries_.decode_queries = row.integer("queries");
    queries_.decodes = p_.decode_tokens / queries_.decode_queries;
    queries_.requests = p_.requests;
    const std::int64_t prefills = p_.requests - queries_.decodes;
    queries_.queries = prefills > 0 ? p_.prefill_tokens / prefills : 0;
    queries_.ragged = true;
    queries_.given_tokens = p_.decode_tokens + p_.prefill_tokens;
    queries_.context = swa_.columns * p_.swa_block_size;
    if (p_.top_k > 0) {
      queries_.context = std::min(queries_.context, covered_states() * p_.ratio);
    }
    queries_.edges = {p_.window - 1,       p_.window,
                      p_.window + 1,       p_.ratio * p_.top_k - 1,
                      p_.ratio * p_.top_k, p_.ratio * (p_.top_k + 1),
                      p_.ratio - 1,        p_.ratio,
                      p_.swa_block_size,   p_.swa_block_size + 1,
                      p_.decode_topk,      p_.window + p_.swa_block_size};
  }

  void check_queries() const {
    if (queries_.decodes * queries_.decode_queries != p_.decode_tokens) {
      throw BadRow("decode_tokens is no multiple of queries");
    }
    if (queries_.decodes > p_.requests) throw BadRow("decode tokens of requests that do not exist");
    if (queries_.decodes < p_.requests && queries_.queries < 1) {
      throw BadRow("prefill requests without tokens");
    }
    if (std::max(queries_.decode_queries, queries_.queries) > queries_.context) {
      throw BadRow("more queries than context");
    }
  }

  std::int64_t covered_states() const { return compressed_.columns * p_.compressed_block_size; }

  // A fourth of the blocks are -1.
  void take_blocks_away(const Step& step, TensorSet& tensors) const {
    for (const BlockTableShape* shape : {&swa_, &compressed_}) {
      if (!tensors.contains(shape->tensor) || step.fill == Fill::exact) continue;
      const std::uint64_t seed = mix(mix(step.seed, kMissing), seed_of(shape->tensor));
      for (std::int64_t place = 0; place < step.live * shape->columns; ++place) {
        auto* blocks = tensors.at(shape->tensor).row<std::int32_t>(place / shape->columns);
        if (random_bits(seed, place) % 4 == 0) blocks[place % shape->columns] = -1;
      }
    }
  }

  // Any slot of a cache. Exact fill: those with the smallest numbers. Adversarial: the highest
  // ones.
  static std::int64_t any_slot(const Step& step, std::uint64_t salt, std::int64_t place,
                               std::int64_t block_size, std::int64_t span) {
    const std::uint64_t seed = mix(step.seed, salt);
    const std::int64_t blocks = kSlots / span, few = std::min<std::int64_t>(blocks, 9999);
    if (step.fill == Fill::exact) return place % (few * block_size);
    const std::int64_t block = integer(seed, 2 * place, 0, few - 1);
    const std::int64_t offset = integer(seed, 2 * place + 1, 0, block_size - 1);
    return (step.fill == Fill::real ? block : blocks - 1 - block % 4) * block_size + offset;
  }

  static bool is_hole(const Step& step, std::uint64_t salt, std::int64_t place) {
    return step.fill == Fill::adversarial && random_bits(mix(step.seed, salt), ~place) % 4 == 0;
  }

  void fill_decode_tokens(const Step& step, const std::vector<reference::QueryToken>& tokens,
                          TensorSet& tensors) const {
    const std::int64_t live = std::min<std::int64_t>(std::ssize(tokens), p_.decode_tokens);
    for (std::int64_t token = 0; token < live; ++token) {
      const std::int64_t position = tokens[static_cast<std::size_t>(token)].position;
      auto* swa = tensors.at("decode_swa_indices").row<std::int32_t>(token);
      for (std::int64_t j = 0; j < p_.window; ++j) {
        const std::int64_t place = token * p_.window + j;
        const bool none = j > position || is_hole(step, kSwaSlots, place);
        swa[j] = static_cast<std::int32_t>(
            none ? -1 : any_slot(step, kSwaSlots, place, p_.swa_block_size, p_.swa_block_span));
      }
      if (p_.decode_topk > 0) fill_decode_states(step, token, position, tensors);
    }
    // A kernel may look up the entries of padded tokens. They have to be -1 or legal.
    const bool far = step.dead_rows == DeadRows::infinity || step.dead_rows == DeadRows::huge;
    for (const char* name : {"decode_swa_indices", "decode_compressed_indices"}) {
      if (!tensors.contains(name)) continue;
      fill_dead_integers(tensors.at(name), live, p_.decode_tokens,
                         far ? DeadRows::nan : step.dead_rows);
    }
    if (tensors.contains("decode_compressed_lens")) {
      store_integers(live_lengths(step, p_.decode_tokens, live, p_.decode_topk),
                     tensors.at("decode_compressed_lens"));
    }
    if (!tensors.contains("decode_is_valid_token")) return;
    auto* valid = tensors.at("decode_is_valid_token").data<std::uint8_t>();
    for (std::int64_t token = 0; token < p_.decode_tokens; ++token) {
      const std::uint64_t bits = random_bits(mix(step.seed, kValid), token);
      valid[token] = token < live && (step.fill == Fill::exact || bits % 3 != 0);
    }
  }

  // Positions, or slots, of as many states as the token has. Adversarial fill: positions in all
  // columns, any that the block table covers.
  void fill_decode_states(const Step& step, std::int64_t token, std::int64_t position,
                          TensorSet& tensors) const {
    const bool local = tensors.contains("decode_is_valid_token");
    const std::int64_t states = std::min((position + 1) / p_.ratio, p_.decode_topk);
    auto* to = tensors.at("decode_compressed_indices").row<std::int32_t>(token);
    for (std::int64_t j = 0; j < p_.decode_topk; ++j) {
      const std::int64_t place = token * p_.decode_topk + j;
      std::int64_t slot =
          any_slot(step, kStates, place, p_.compressed_block_size, p_.compressed_block_span);
      if (local) slot = position_of_state(step, place);
      const bool none = j >= states && (step.fill != Fill::adversarial || !local);
      to[j] = static_cast<std::int32_t>(slot);
      if (none || is_hole(step, kStates, place)) to[j] = local ? negative_index(step, place) : -1;
    }
  }

  std::int64_t position_of_state(const Step& step, std::int64_t place) const {
    const std::int64_t end = covered_states();
    if (step.fill == Fill::exact) return place % end;
    const std::uint64_t bits = random_bits(mix(step.seed, kStates), place);
    const std::int64_t any = static_cast<std::int64_t>(bits >> 33) % end;
    const std::int64_t edges[] = {any, 0, end - 1, any,
                                  std::min(p_.compressed_block_size, end - 1)};
    return step.fill == Fill::real ? any : edges[bits % std::size(edges)];
  }

  void fill_prefill_tokens(const Step& step, const std::vector<reference::QueryToken>& tokens,
                           TensorSet& tensors) const {
    if (p_.top_k == 0) return;
    HostTensor& topk = tensors.at("prefill_topk_indices");
    std::int64_t row = 0;
    for (std::int64_t token = p_.decode_tokens; token < std::ssize(tokens); ++token, ++row) {
      const std::int64_t states = (tokens[static_cast<std::size_t>(token)].position + 1) / p_.ratio;
      auto* to = topk.row<std::int32_t>(row);
      fill_chosen_states(step, token, states, p_.top_k, p_.top_k, to, true);
      // Entries without a meaning look like states that an earlier step has left.
      for (std::int64_t j = std::min(states, p_.top_k); j < p_.top_k; ++j) {
        if (to[j] >= 0) to[j] = static_cast<std::int32_t>(to[j] % covered_states());
      }
    }
    fill_dead_integers(topk, row, p_.prefill_tokens, step.dead_rows);
  }

  reference::MixedBatch reference_input(const TensorSet& tensors) const {
    const auto integers = [&tensors](const char* name) {
      return tensors.contains(name) ? tensors.at(name).data<std::int32_t>() : nullptr;
    };
    reference::MixedBatch batch;
    batch.decode_swa_indices = integers("decode_swa_indices");
    batch.decode_compressed_indices = integers("decode_compressed_indices");
    batch.decode_compressed_lens = integers("decode_compressed_lens");
    if (tensors.contains("decode_is_valid_token")) {
      batch.decode_is_valid_token = tensors.at("decode_is_valid_token").data<std::uint8_t>();
    }
    batch.prefill_topk_indices = integers("prefill_topk_indices");
    batch.token_to_req = integers("token_to_req");
    batch.queries = queries_.reference(tensors);
    batch.decode_tokens = p_.decode_tokens;
    batch.prefill_tokens = p_.prefill_tokens;
    batch.decode_swa_row_stride = p_.decode_swa_row_stride;
    batch.decode_compressed_row_stride = p_.decode_compressed_row_stride;
    batch.prefill_topk_row_stride = p_.prefill_topk_row_stride;
    batch.window = p_.window;
    batch.ratio = p_.ratio;
    batch.top_k = p_.top_k;
    batch.decode_topk = p_.decode_topk;
    batch.width = p_.width;
    batch.swa = {swa_.reference(tensors), p_.swa_block_span};
    batch.swa.table.block_size = p_.swa_block_size;
    if (tensors.contains("compressed_block_table")) {
      batch.compressed.table = compressed_.reference(tensors);
    }
    batch.compressed.table.block_size = p_.compressed_block_size;
    batch.compressed.block_span = p_.compressed_block_span;
    return batch;
  }

  QueryShape queries_;
  BlockTableShape swa_, compressed_;  // block_size: slots from one block to the next
  bool missing_blocks_;
};

}  // namespace build_flashinfer_mixed_sparse_indices_cases

OpDefinition define_build_flashinfer_mixed_sparse_indices() {
  using namespace build_flashinfer_mixed_sparse_indices_cases;
  OpDefinition op;
  op.name = "build_flashinfer_mixed_sparse_indices";
  op.summary =
      "V4 with FlashInfer: window slots, then compressed slots, of decode and prefill tokens";
  op.parameters = {
      {"requests", 4, 0, 65536, "padded requests"},
      {"decode_tokens", 2, 0, 65536, "of the first requests"},
      {"prefill_tokens", 6, 0, 1 << 20, "of the other requests"},
      {"queries", 1, 1, 64, "tokens of a decode request"},
      {"window", 16, 1, 65536, "sliding window"},
      {"ratio", 4, 1, 65536, "tokens per compressed state"},
      {"top_k", 16, 0, 65536, "most states of a prefill token; 0: window only"},
      {"decode_topk", 16, 0, 65536, "compressed columns of a decode token; 0: window only"},
      {"local", 0, 0, 1, "1: decode tokens come with compressed positions; 0: with slots"},
      {"lens", 0, 0, 1, "1: decode tokens come with lengths"},
      {"compressed", 1, 0, 1, "1: the call has a table of compressed blocks"},
      {"swa_blocks", 4, 1, 1 << 20, "blocks per request"},
      {"swa_block_size", 16, 1, 65536, "positions per block"},
      {"swa_block_gap", 0, 0, 65536, "slots between two blocks"},
      {"compressed_blocks", 4, 0, 1 << 20, "blocks of compressed states per request"},
      {"compressed_block_size", 4, 1, 65536, "compressed states per block"},
      {"compressed_block_gap", 0, 0, 65536, "slots between two blocks of them"},
      {"missing_blocks", 0, 0, 1, "1: some blocks of the tables are -1"},
      {"align", 4, 1, 4096, "the compressed columns are a multiple of it"},
      {"spare", 0, 0, 65536, "more compressed columns"},
      {"decode_swa_gap", 0, 0, 65536, "elements between the slots of two decode tokens"},
      {"decode_compressed_gap", 0, 0, 65536, "elements between the states of two decode tokens"},
      {"prefill_topk_gap", 0, 0, 65536, "elements between the states of two prefill tokens"},
      {"table_gap", 0, 0, 65536, "elements between two rows of a block table"},
      kOutGap};
  op.make_problem = make_problem_of<MixedIndicesProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
