// SPDX-License-Identifier: Apache-2.0
//
// Cases of combine_topk_swa_indices. The batch has live and padded requests of a prefill chunk.
// Padded requests have no query tokens, and all tokens behind those of live requests are padding.
#include "reference/index_maps/combine_topk_swa_indices.h"

#include <fmt/format.h>
#include <plumb/ops/metadata.h>

#include <algorithm>
#include <limits>

#include "cases/ops/metadata/chosen_states.h"
#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace combine_topk_swa_indices_cases {

enum DenseListsSalt : std::uint64_t { kReplay = 1, kImages, kOutside };

using P = plumb_combine_topk_swa_indices_params;

// vLLM 0.22.1 and 0.33 add the offset to every entry. Their kernels for ROCm, and some versions of
// the common one, write -1 for entries outside [0, compressed_rows).
const ContractChoice kMinusOne{"minus_one",
                               {"shifted", "keep"},
                               "a top-k entry of -1: the row in front of the request's own, or -1"};
const ContractChoice kBounds{
    "bounds",
    {"unchecked", "checked"},
    "top-k entries from compressed_rows on do not occur, or become -1",
    {{"checked", "unchecked", "all entries are rows of the request's compressed states"}}};
const ContractChoice kTailEntries{
    "tail", {"minus_one", "untouched"}, "columns behind the last entry of a row"};
const ContractChoice kMissing{"missing",
                              {"column_0", "minus_one"},
                              "entries for which the top-k table has no column: that of column 0 "
                              "again, or -1"};

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests), queries = parameter("queries");
  t.given(queries, 1);
  t.given(parameter("align"), 1);
  t.given(parameter("images"), t.has("left_visible", &P::left_visible));
  t.given(parameter("replay"), t.has("replay_start", &P::replay_start));
  const Formula tokens =
      t.scalar("tokens", &P::tokens, unless_negative(parameter("tokens"), requests * queries));
  const Formula ratio = t.scalar("ratio", &P::ratio), top_k = t.scalar("top_k", &P::top_k);
  const Formula window = t.scalar("window", &P::window);
  const Formula topk_width =
      t.scalar("topk_width", &P::topk_width, unless_negative(parameter("topk_width"), top_k));
  const Formula stride = t.scalar("topk_indices_row_stride", &P::topk_indices_row_stride,
                                  topk_width + parameter("row_gap"));
  const Formula states = t.scalar("compressed_rows", &P::compressed_rows,
                                  !!top_k * div_up(parameter("context"), ratio));
  t.scalar("rows_per_request", &P::rows_per_request,
           states + window + greatest(parameter("batched_tokens"), queries));
  const Formula align = parameter("align");
  const Formula width = t.scalar("width", &P::width,
                                 div_up(top_k + window + parameter("image_tokens"), align) * align);
  t.choice("minus_one", &P::minus_one, kMinusOne);
  t.choice("bounds", &P::bounds, kBounds);
  t.choice("tail", &P::tail, kTailEntries);
  t.choice("missing", &P::missing, kMissing);
  add_queries(t, requests);
  t.input("gather_lens", &P::gather_lens, {requests, 1}, "tokens in the workspace");
  t.input("replay_start", &P::replay_start, {requests, 1}, "first position with a cache entry")
      .when(parameter("replay"));
  t.input("left_visible", &P::left_visible, {tokens, 1}, "earlier tokens of the token's image")
      .when(parameter("images"));
  t.input("right_visible", &P::right_visible, {tokens, 1}, "later tokens of it")
      .when(parameter("images"));
  t.input("topk_indices", &P::topk_indices, {tokens, topk_width}, "compressed positions")
      .strides({stride, 1});
  t.in_place("combined_indices", &P::combined_indices, {tokens, width}, "rows of the workspace");
  t.strides({{"combined_indices_row_stride", &P::combined_indices_row_stride}});
  t.output("combined_lens", &P::combined_lens, {tokens, 1}, "entries of each token");
  return requests;
}

class CombineDenseProblem final : public TableProblem<P> {
 public:
  CombineDenseProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        image_tokens_(row.integer("images") ? row.integer("image_tokens") : 0) {
    queries_.requests = p_.requests;
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.first = row.integer("first");
    queries_.ragged = true;
    queries_.given_tokens = p_.tokens;
    queries_.edges = {p_.window - 1,       p_.window,
                      p_.window + 1,       p_.ratio * p_.top_k - 1,
                      p_.ratio * p_.top_k, p_.ratio * (p_.top_k + 1),
                      p_.ratio - 1,        p_.window + queries_.queries - 1};
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
    if (p_.top_k > 0 && p_.topk_width == 0 && p_.missing == PLUMB_MISSING_COLUMN_0) {
      throw BadRow(row.where + ": a top-k table without a column 0");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_queries(queries_, step, tensors);
    const reference::QueryLayout layout = queries_.reference(tensors);
    for (std::int64_t request = 0; request < layout.requests; ++request) {
      fill_gathered(step, request, layout, tensors);
    }
    HostTensor& topk = tensors.at("topk_indices");
    const auto queries = query_tokens(layout, p_.tokens);
    for (std::int64_t token = 0; token < std::ssize(queries); ++token) {
      const std::int64_t states = (queries[token].position + 1) / p_.ratio;
      auto* to = topk.row<std::int32_t>(token);
      fill_chosen_states(step, token, states, p_.top_k, p_.topk_width, to);
      if (p_.bounds == PLUMB_BOUNDS_CHECKED) put_outside(step, token, to);
      if (tensors.contains("left_visible")) fill_image(step, token, tensors);
    }
    for (const char* name : {"topk_indices", "left_visible", "right_visible"}) {
      if (!tensors.contains(name)) continue;
      fill_dead_integers(tensors.at(name), std::ssize(queries), p_.tokens, step.dead_rows);
    }
    fill_before(tensors.at("combined_indices_before"), step.seed);
  }

  Expectations expect(const Step& step, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const auto expected = combine_topk_swa_indices(reference_input(tensors));
    std::vector<std::int64_t> indices = integers_of(tensors.at("combined_indices_before"));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (expected.indices[i] != reference::kNoEntry)
        indices[i] = expected.indices[i];
      else if (p_.tail == PLUMB_ROW_TAIL_MINUS_ONE)
        indices[i] = -1;
    }
    const HostTensor& lens = tensors.at("combined_lens");
    return {expect_exact(lens, expected.lens, promised_rows_by_inputs(step, tensors, lens.spec())),
            expect_exact(tensors.at("combined_indices"), std::move(indices), {})};
  }

  // Engines write no length for a token of no request.
  RowMask promised_rows_by_inputs(const Step&, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    if (spec.name != "combined_lens") return {};
    const std::int64_t live = queries_.reference(tensors).tokens();
    RowMask rows;
    for (std::int64_t token = 0; token < p_.tokens; ++token) rows.push_back(token < live);
    return rows;
  }

  double cost() const override { return row_blocks_cost(p_.tokens, p_.width); }

 private:
  // The tokens of a request that are in the workspace: its queries, and the earlier tokens that a
  // query token may see and that have cache entries.
  void fill_gathered(const Step& step, std::int64_t request, const reference::QueryLayout& layout,
                     TensorSet& tensors) const {
    const std::int64_t queries = layout.query_len(request);
    const std::int64_t prefix = layout.seq_lens[request] - queries;
    std::int64_t visible = prefix;
    if (tensors.contains("replay_start")) {
      const std::int64_t start = replay_start(step, request, prefix);
      tensors.at("replay_start").data<std::int32_t>()[request] = static_cast<std::int32_t>(start);
      visible = prefix - start;
    }
    const std::int64_t gathered = queries + std::min(visible, p_.window - 1 + image_tokens_);
    if (gathered > p_.rows_per_request - p_.compressed_rows) {
      throw BadRow(fmt::format("{} tokens do not fit into the region of a request", gathered));
    }
    tensors.at("gather_lens").data<std::int32_t>()[request] = static_cast<std::int32_t>(gathered);
  }

  std::int64_t replay_start(const Step& step, std::int64_t request, std::int64_t prefix) const {
    const std::uint64_t seed = mix(step.seed, kReplay);
    if (step.fill == Fill::exact) return prefix / 2;
    if (step.fill == Fill::real) return integer(seed, request, 0, prefix);
    const std::int64_t edges[] = {prefix, prefix - p_.window + 2, 0, prefix - p_.window + 1,
                                  prefix - p_.window};
    const auto which = random_bits(seed, 0) + static_cast<std::uint64_t>(request);
    return std::clamp<std::int64_t>(edges[which % std::size(edges)], 0, prefix);
  }

  // The token's place in an image of at most image_tokens tokens. A token of text sees none. An
  // image may begin before the sequence and end behind it: the window may not.
  void fill_image(const Step& step, std::int64_t token, TensorSet& tensors) const {
    const std::uint64_t seed = mix(step.seed, kImages);
    std::int64_t length = image_tokens_, left = length / 2;
    if (step.fill != Fill::exact) {
      length = integer(seed, 2 * token, 0, image_tokens_);
      left = integer(seed, 2 * token + 1, 0, std::max<std::int64_t>(length - 1, 0));
    }
    if (step.fill == Fill::adversarial) {
      length = token % 5 == 4 ? 0 : image_tokens_;
      const std::int64_t edges[] = {length - 1, 0, p_.window - 2, p_.window - 1, p_.window};
      left = edges[(random_bits(seed, 0) + static_cast<std::uint64_t>(token)) % std::size(edges)];
      left = std::clamp<std::int64_t>(left, 0, std::max<std::int64_t>(length - 1, 0));
    }
    const std::int64_t right = std::max<std::int64_t>(length - 1 - left, 0);
    tensors.at("left_visible").data<std::int32_t>()[token] = static_cast<std::int32_t>(left);
    tensors.at("right_visible").data<std::int32_t>()[token] = static_cast<std::int32_t>(right);
  }

  // Entries behind the compressed states of the request.
  void put_outside(const Step& step, std::int64_t token, std::int32_t* to) const {
    const std::int64_t outside[] = {p_.compressed_rows, p_.compressed_rows + 7,
                                    std::numeric_limits<std::int32_t>::max()};
    for (std::int64_t j = 0; j < p_.topk_width; ++j) {
      const std::uint64_t bits = random_bits(mix(step.seed, kOutside), token * p_.topk_width + j);
      if (step.fill != Fill::adversarial || bits % 5 != 0) continue;
      to[j] = static_cast<std::int32_t>(outside[(bits >> 8) % std::size(outside)]);
    }
  }

  reference::DenseChunkLists reference_input(const TensorSet& tensors) const {
    const auto integers = [&tensors](const char* name) {
      return tensors.contains(name) ? tensors.at(name).data<std::int32_t>() : nullptr;
    };
    reference::DenseChunkLists input;
    input.lists.queries = queries_.reference(tensors);
    input.lists.gather_lens = integers("gather_lens");
    input.lists.topk_indices = integers("topk_indices");
    input.lists.tokens = p_.tokens;
    input.lists.topk_width = p_.topk_width;
    input.lists.topk_indices_row_stride = p_.topk_indices_row_stride;
    input.lists.top_k = p_.top_k;
    input.lists.ratio = p_.ratio;
    input.lists.window = p_.window;
    input.lists.rows_per_request = p_.rows_per_request;
    input.lists.compressed_rows = p_.compressed_rows;
    input.lists.shift_minus_one = p_.minus_one == PLUMB_MINUS_ONE_SHIFTED;
    input.replay_start = integers("replay_start");
    input.left_visible = integers("left_visible");
    input.right_visible = integers("right_visible");
    input.width = p_.width;
    input.check_bounds = p_.bounds == PLUMB_BOUNDS_CHECKED;
    input.repeat_column_0 = p_.missing == PLUMB_MISSING_COLUMN_0;
    return input;
  }

  QueryShape queries_;
  std::int64_t image_tokens_ = 0;
};

}  // namespace combine_topk_swa_indices_cases

OpDefinition define_combine_topk_swa_indices() {
  using namespace combine_topk_swa_indices_cases;
  OpDefinition op;
  op.name = "combine_topk_swa_indices";
  op.summary =
      "workspace rows that each prefill token attends, as a table; with images and replay of vLLM "
      "0.33";
  op.parameters = {{"requests", 3, 0, 4096, "padded requests of the chunk"},
                   {"queries", 3, 1, 8192, "most query tokens of a request"},
                   {"tokens", -1, -1, 1 << 20, "of the call; -1: those of full requests"},
                   {"context", 200, 1, 1 << 24, "longest sequence"},
                   {"first", 0, 0, 1 << 24, "query_start_loc of the chunk's first request"},
                   {"ratio", 4, 1, 65536, "tokens per compressed state"},
                   {"top_k", 16, 0, 65536, "most states of a token; 0: window only"},
                   {"topk_width", -1, -1, 65536, "columns of the top-k table; -1: top_k"},
                   {"row_gap", 0, 0, 65536, "elements between two rows of the top-k table"},
                   {"window", 128, 1, 65536, "sliding window"},
                   {"batched_tokens", 64, 0, 1 << 20, "most query tokens of a batch"},
                   {"images", 0, 0, 1, "1: tokens may be of images"},
                   {"image_tokens", 0, 0, 65536, "tokens of the longest image"},
                   {"replay", 0, 0, 1, "1: windows begin at replay_start or later"},
                   {"align", 128, 1, 4096, "the columns are a multiple of it"},
                   kOutGap};
  op.choices = {kMinusOne, kBounds, kTailEntries, kMissing};
  op.make_problem = make_problem_of<CombineDenseProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
