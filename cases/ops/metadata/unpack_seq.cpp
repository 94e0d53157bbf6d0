// SPDX-License-Identifier: Apache-2.0
//
// Cases of unpack_seq. The batch has live and padded sequences. Padded ones are empty.
#include "reference/metadata/unpack_seq.h"

#include <plumb/ops/metadata.h>

#include "cases/ops/metadata/seq_packing.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace unpack_seq_cases {

using P = plumb_unpack_seq_params;

Formula members(TablePart<P>& t) {
  const SeqPackingMembers sizes = add_seq_packing(t);
  t.given(word_is("dtype", "i32"), 1);  // 4-byte elements of a recorded call are i32
  t.word("element_bytes", &P::element_bytes, element_bytes());
  const Formula stride =
      t.scalar("out_row_stride", &P::out_row_stride, sizes.columns + parameter("row_gap"));
  t.input("x", &P::x, {sizes.sequences, sizes.max_length, sizes.columns}, "padded sequences")
      .elements(packed_dtype());
  t.input("lengths", &P::lengths, {sizes.sequences, 1}, "rows of each sequence");
  t.in_place("out", &P::out, {sizes.tokens, sizes.columns}, "rows behind the last are kept")
      .strides({stride, 1})
      .elements(packed_dtype());
  return sizes.sequences;
}

class UnpackSeqProblem final : public TableProblem<P> {
 public:
  UnpackSeqProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {}

  // Padding rows of all sequences, live ones too, hold dead values.
  void fill(const Step& step, TensorSet& tensors) const override {
    const auto lengths = fill_seq_lengths(p_.max_length, p_.tokens, step, tensors.at("lengths"));
    for (std::int64_t sequence = 0; sequence < p_.sequences; ++sequence) {
      const std::int64_t first = sequence * p_.max_length;
      fill_bits(tensors.at("x"), first, first + lengths[sequence], mix(step.seed, 1));
      fill_dead_bits(tensors.at("x"), first + lengths[sequence], first + p_.max_length,
                     step.dead_rows);
    }
    fill_bits(tensors.at("out_before"), 0, p_.tokens, mix(step.seed, 2));
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const auto row_of_token =
        reference::unpack_seq(integers_of(tensors.at("lengths")), p_.max_length);
    HostTensor expected = tensors.at("out_before");
    for (std::int64_t token = 0; token < std::ssize(row_of_token); ++token) {
      copy_row(tensors.at("x"), row_of_token[token], expected, token);
    }
    return {expect_bits(tensors.at("out"), expected, {}, "differs from the reference")};
  }

  double cost() const override {
    return seq_packing_cost(p_.sequences, p_.max_length * p_.columns);
  }
  double checked_factor() const override { return 1.5; }
};

}  // namespace unpack_seq_cases

OpDefinition define_unpack_seq() {
  using namespace unpack_seq_cases;
  OpDefinition op;
  op.name = "unpack_seq";
  op.summary = "drops the padding of packed sequences";
  describe_seq_packing(op);
  op.make_problem = make_problem_of<UnpackSeqProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
