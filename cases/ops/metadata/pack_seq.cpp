// SPDX-License-Identifier: Apache-2.0
//
// Cases of pack_seq. The batch has live and padded sequences. Padded ones are empty.
#include "reference/metadata/pack_seq.h"

#include <plumb/ops/metadata.h>

#include <numeric>

#include "cases/ops/metadata/seq_packing.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace pack_seq_cases {

using P = plumb_pack_seq_params;

Formula members(TablePart<P>& t) {
  const SeqPackingMembers sizes = add_seq_packing(t);
  // Padding is -inf, or -1 for i32, or 0 for bytes.
  t.word("pad_bits", &P::pad_bits,
         {"dtype", {{"f32", 0xff800000}, {"bf16", 0xff80}, {"i32", 0xffffffff}, {"u8", 0}}});
  t.word("element_bytes", &P::element_bytes, element_bytes());
  const Formula stride =
      t.scalar("x_row_stride", &P::x_row_stride, sizes.columns + parameter("row_gap"));
  t.input("x", &P::x, {sizes.tokens, sizes.columns}, "rows of all sequences")
      .strides({stride, 1})
      .elements(packed_dtype());
  t.input("lengths", &P::lengths, {sizes.sequences, 1}, "rows of each sequence");
  t.output("out", &P::out, {sizes.sequences, sizes.max_length, sizes.columns}, "padded sequences")
      .elements(packed_dtype());
  t.strides(
      {{"out_sequence_stride", &P::out_sequence_stride}, {"out_row_stride", &P::out_row_stride}});
  return sizes.sequences;
}

class PackSeqProblem final : public TableProblem<P> {
 public:
  PackSeqProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    const auto lengths = fill_seq_lengths(p_.max_length, p_.tokens, step, tensors.at("lengths"));
    const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    fill_bits(tensors.at("x"), 0, tokens, mix(step.seed, 1));
    fill_dead_bits(tensors.at("x"), tokens, p_.tokens, step.dead_rows);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const auto token_of_row =
        reference::pack_seq(integers_of(tensors.at("lengths")), p_.max_length);
    HostTensor expected(tensors.at("out").spec());
    for (std::size_t i = 0; i < expected.bytes().size(); ++i) {
      const std::size_t byte = i % static_cast<std::size_t>(p_.element_bytes);
      expected.bytes()[i] = static_cast<std::byte>(p_.pad_bits >> (8 * byte));
    }
    for (std::int64_t row = 0; row < std::ssize(token_of_row); ++row) {
      if (token_of_row[row] >= 0) copy_row(tensors.at("x"), token_of_row[row], expected, row);
    }
    return {expect_bits(tensors.at("out"), expected, {}, "differs from the reference")};
  }

  double cost() const override {
    return seq_packing_cost(p_.sequences, p_.max_length * p_.columns);
  }
  double checked_factor() const override { return 1.5; }
};

}  // namespace pack_seq_cases

OpDefinition define_pack_seq() {
  using namespace pack_seq_cases;
  OpDefinition op;
  op.name = "pack_seq";
  op.summary = "rows of sequences of different length, padded to one length";
  describe_seq_packing(op);
  op.parameters.push_back(kOutGap);
  op.make_problem = make_problem_of<PackSeqProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
