// SPDX-License-Identifier: Apache-2.0
//
// Cases of transform_index_page_table. The batch has live and padded tokens, or, if `requests` is
// set, live and padded requests. The adversarial fill has lengths around topk, and indices at the
// borders of pages.
#include "reference/index_maps/transform_index_page_table.h"

#include <plumb/ops/metadata.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace transform_index_page_table_cases {

enum TransformSalt : std::uint64_t { kLengths = 1, kIndices, kMissing };

using P = plumb_transform_index_page_table_params;

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula tokens = t.scalar("tokens", &P::tokens), topk = t.scalar("topk", &P::topk);
  t.scalar("page_size", &P::page_size);
  t.given(parameter("lens"), t.has("seq_lens", &P::seq_lens));
  t.given(parameter("raw"), t.has("raw_indices", &P::raw_indices));
  t.given(parameter("missing_pages"), 0);
  t.given(parameter("table_gap"), 0);
  const Formula rows = requests + tokens * !requests, pages = parameter("pages");
  const Formula stride =
      t.scalar("topk_indices_row_stride", &P::topk_indices_row_stride, topk + parameter("row_gap"));
  const Formula table_stride =
      t.scalar("page_table_row_stride", &P::page_table_row_stride, pages + parameter("table_gap"));
  t.input("topk_indices", &P::topk_indices, {tokens, topk}, "selected indices; negative: none")
      .strides({stride, 1});
  t.input("seq_lens", &P::seq_lens, {tokens, 1}, "candidates of each token")
      .when(parameter("lens"));
  t.input("cu_seqlens_q", &P::cu_seqlens_q, {requests + 1, 1}, "first token of each request")
      .when(requests);
  t.input("page_table", &P::page_table, {rows, pages}, "pages of each request or token")
      .strides({table_stride, 1});
  t.output("page_indices", &P::page_indices, {tokens, topk}, "slots; -1: none");
  t.strides({{"page_indices_row_stride", &P::page_indices_row_stride}});
  t.output("raw_indices", &P::raw_indices, {tokens, topk}, "indices before the conversion")
      .when(parameter("raw"));
  t.strides({{"raw_indices_row_stride", &P::raw_indices_row_stride}});
  return rows;
}

class TransformProblem final : public TableProblem<P> {
 public:
  TransformProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        lens_(row.integer("lens") != 0),
        missing_pages_(row.integer("missing_pages") != 0) {
    pages_.requests = p_.requests > 0 ? p_.requests : p_.tokens;
    pages_.columns = row.integer("pages");
    pages_.gap = p_.page_table_row_stride - pages_.columns;
    pages_.block_size = p_.page_size;
    pages_.tensor = "page_table";
    require_int32_slots(pages_, row.where);
    if (!std::has_single_bit(static_cast<std::uint64_t>(p_.page_size))) {
      throw BadRow(row.where + ": page_size is no power of two");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const std::int64_t live = fill_tokens(step, tensors);
    fill_block_table(pages_, step, step.live, tensors);
    if (missing_pages_) take_pages_away(step, tensors);
    HostTensor& indices = tensors.at("topk_indices");
    for (std::int64_t token = 0; token < live; ++token) {
      const std::int64_t length = length_of(step, token);
      if (tensors.contains("seq_lens")) {
        tensors.at("seq_lens").data<std::int32_t>()[token] = static_cast<std::int32_t>(length);
      }
      fill_indices(step, token, length, indices.row<std::int32_t>(token));
    }
    // Without lengths a kernel looks up the indices of padded tokens. They have to be -1 or legal.
    const bool read = !tensors.contains("seq_lens") && step.dead_rows != DeadRows::foreign;
    fill_dead_integers(indices, live, p_.tokens, read ? DeadRows::nan : step.dead_rows);
    for (std::int64_t token = live; tensors.contains("seq_lens") && token < p_.tokens; ++token) {
      tensors.at("seq_lens").data<std::int32_t>()[token] = 0;
    }
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    auto expected = transform_index_page_table(reference_input(tensors));
    Expectations expectations{
        expect_slots(tensors.at("page_indices"), std::move(expected.slots), {})};
    if (tensors.contains("raw_indices")) {
      expectations.push_back(expect_exact(tensors.at("raw_indices"), std::move(expected.raw), {}));
    }
    return expectations;
  }

  double cost() const override { return row_blocks_cost(p_.tokens, p_.topk); }

 private:
  std::int64_t candidates() const { return pages_.positions(); }

  // Returns the number of live tokens. Requests have any number of tokens, in fills that are not
  // exact.
  std::int64_t fill_tokens(const Step& step, TensorSet& tensors) const {
    if (p_.requests == 0) return step.live;
    const auto lengths = live_lengths(step, p_.requests, step.live, p_.tokens / p_.requests);
    const auto starts = reference::prefix_sums(lengths);
    store_integers(starts, tensors.at("cu_seqlens_q"));
    return starts.back();
  }

  std::int64_t length_of(const Step& step, std::int64_t token) const {
    const std::uint64_t seed = mix(step.seed, kLengths);
    if (step.fill == Fill::exact) return std::max<std::int64_t>(candidates() - token, 0);
    if (step.fill == Fill::real) return integer(seed, token, 0, candidates());
    const std::int64_t edges[] = {p_.topk + 1, candidates(),     p_.topk,      p_.topk - 1,
                                  0,           candidates() - 1, p_.page_size, 1};
    const auto which = random_bits(seed, 0) + static_cast<std::uint64_t>(token);
    return std::clamp<std::int64_t>(edges[which % std::size(edges)], 0, candidates());
  }

  // The indices that a top-k kernel has selected: -1 behind the last one. It writes none for a
  // token whose candidates are all selected, and the row has anything.
  void fill_indices(const Step& step, std::int64_t token, std::int64_t length,
                    std::int32_t* to) const {
    const bool unwritten = lens_ && length <= p_.topk;
    for (std::int64_t j = 0; j < p_.topk; ++j) {
      const std::uint64_t bits = random_bits(mix(step.seed, kIndices), token * p_.topk + j);
      const auto any = static_cast<std::int64_t>(bits >> 33);
      std::int64_t index = -1;
      if (j < length) index = step.fill == Fill::exact ? length - 1 - j : any % length;
      if (step.fill == Fill::adversarial && length > 0) {
        const std::int64_t edges[] = {
            index, 0, length - 1, negative_index(step, bits), p_.page_size - 1, p_.page_size};
        index = std::min(edges[bits % std::size(edges)], length - 1);
      }
      if (unwritten) index = step.fill == Fill::adversarial ? any : any % candidates();
      to[j] = static_cast<std::int32_t>(index);
    }
  }

  // A fourth of the pages are -1.
  void take_pages_away(const Step& step, TensorSet& tensors) const {
    if (step.fill == Fill::exact) return;
    const std::uint64_t seed = mix(step.seed, kMissing);
    for (std::int64_t place = 0; place < step.live * pages_.columns; ++place) {
      auto* pages = tensors.at("page_table").row<std::int32_t>(place / pages_.columns);
      if (random_bits(seed, place) % 4 == 0) pages[place % pages_.columns] = -1;
    }
  }

  reference::SelectedIndices reference_input(const TensorSet& tensors) const {
    const auto integers = [&tensors](const char* name) {
      return tensors.contains(name) ? tensors.at(name).data<std::int32_t>() : nullptr;
    };
    reference::SelectedIndices input;
    input.topk_indices = integers("topk_indices");
    input.seq_lens = integers("seq_lens");
    input.cu_seqlens_q = integers("cu_seqlens_q");
    input.tokens = p_.tokens;
    input.topk = p_.topk;
    input.requests = p_.requests;
    input.row_stride = p_.topk_indices_row_stride;
    input.page_table = pages_.reference(tensors);
    return input;
  }

  BlockTableShape pages_;
  bool lens_, missing_pages_;
};

}  // namespace transform_index_page_table_cases

OpDefinition define_transform_index_page_table() {
  using namespace transform_index_page_table_cases;
  OpDefinition op;
  op.name = "transform_index_page_table";
  op.summary = "SGLang: slots of the top-k indices of each token, by a page table";
  op.parameters = {{"tokens", 4, 0, 1 << 20, "padded tokens"},
                   {"requests", 0, 0, 65536, "rows of the page table; 0: one for each token"},
                   {"topk", 64, 1, 65536, "indices per token"},
                   {"lens", 0, 0, 1, "1: tokens of at most topk candidates select all of them"},
                   {"raw", 0, 0, 1, "1: the op also writes the indices"},
                   {"pages", 4, 1, 1 << 20, "columns of the page table"},
                   {"page_size", 64, 1, 65536, "slots of a page, a power of two"},
                   {"missing_pages", 0, 0, 1, "1: some pages of the table are -1"},
                   {"row_gap", 0, 0, 65536, "elements between the indices of two tokens"},
                   {"table_gap", 0, 0, 65536, "elements between two rows of the page table"},
                   kOutGap};
  op.make_problem = make_problem_of<TransformProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
