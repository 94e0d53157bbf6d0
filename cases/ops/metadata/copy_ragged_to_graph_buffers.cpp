// SPDX-License-Identifier: Apache-2.0
//
// Cases of copy_ragged_to_graph_buffers. Dead rows are empty. Behind its last entry the list holds
// dead values; the choice `copied` says whether these are copied too.
#include "reference/metadata/copy_ragged_to_graph_buffers.h"

#include <plumb/ops/metadata.h>

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace copy_ragged_to_graph_buffers_cases {

using P = plumb_copy_ragged_to_graph_buffers_params;

const ContractChoice kCopied{
    "copied", {"capacity", "length"}, "entries: rows * max_per_row, or as many as rows own"};

Formula members(TablePart<P>& t) {
  const Formula rows = t.scalar("rows", &P::rows);
  const Formula max_per_row = t.scalar("max_per_row", &P::max_per_row);
  t.choice("copied", &P::copied, kCopied);
  const Formula buffer = buffer_rows(t, rows, "more_buffer_rows");
  t.input("indices", &P::indices, {rows * max_per_row, 1}, "entries of all rows");
  t.input("indptr", &P::indptr, {rows + 1, 1}, "first entry of each row");
  t.in_place("indices_buffer", &P::indices_buffer, {buffer * max_per_row, 1},
             "of the graph, which gets the indices");
  t.in_place("indptr_buffer", &P::indptr_buffer, {buffer + 1, 1},
             "of the graph, which gets indptr");
  return rows;
}

class CopyRaggedProblem final : public TableProblem<P> {
 public:
  CopyRaggedProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    const auto indptr =
        reference::prefix_sums(live_lengths(step, p_.rows, step.live, p_.max_per_row));
    store_integers(indptr, tensors.at("indptr"));
    HostTensor& indices = tensors.at("indices");
    for (std::int64_t i = 0; i < indptr.back(); ++i) {
      const bool hole = step.fill == Fill::adversarial && i % 3 == 0;
      indices.data<std::int32_t>()[i] =
          hole ? -1 : static_cast<std::int32_t>(integer(mix(step.seed, 1), i, 0, 1 << 30));
    }
    fill_dead_integers(indices, indptr.back(), indices.rows(), step.dead_rows);
    fill_before(tensors.at("indices_buffer_before"), step.seed);
    fill_before(tensors.at("indptr_buffer_before"), step.seed);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    reference::GraphBuffers expected{integers_of(tensors.at("indices_buffer_before")),
                                     integers_of(tensors.at("indptr_buffer_before"))};
    const auto* indptr = tensors.at("indptr").data<std::int32_t>();
    const bool all = p_.copied == PLUMB_COPIED_CAPACITY;
    if (!all && indptr[p_.rows] > tensors.at("indices").rows()) {
      throw BadRow("indptr has more entries than indices");
    }
    copy_ragged_to_graph_buffers(tensors.at("indices").data<std::int32_t>(),
                                 all ? p_.rows * p_.max_per_row : indptr[p_.rows], indptr, p_.rows,
                                 expected);
    return {expect_exact(tensors.at("indptr_buffer"), expected.indptr, {}),
            expect_ragged(tensors.at("indices_buffer"), expected.indices,
                          integers_of(tensors.at("indptr")), "row")};
  }

  double cost() const override { return row_blocks_cost(p_.rows, p_.max_per_row); }
};

}  // namespace copy_ragged_to_graph_buffers_cases

OpDefinition define_copy_ragged_to_graph_buffers() {
  using namespace copy_ragged_to_graph_buffers_cases;
  OpDefinition op;
  op.name = "copy_ragged_to_graph_buffers";
  op.summary = "a ragged list into buffers that keep their addresses from step to step";
  op.parameters = {
      {"rows", 5, 0, 65536, "padded rows of the step"},
      {"max_per_row", 128, 0, 65536, "most entries of a row"},
      {"more_buffer_rows", 2, 0, 65536, "rows of the buffers beyond those of the step"}};
  op.choices = {kCopied};
  op.make_problem = make_problem_of<CopyRaggedProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
