// SPDX-License-Identifier: Apache-2.0
//
// Cases of pack_seq. Capacity and live count are sequences; dead ones are empty.
#include "reference/metadata/pack_seq.h"

#include <numeric>

#include "cases/ops/metadata/seq_packing.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

class PackSeqProblem : public Problem {
 public:
  explicit PackSeqProblem(const Row& row) : shape_(row) {}

  std::int64_t capacity() const override { return shape_.sequences; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(shape_.flat("x"));
    tensors.add(column("lengths", shape_.sequences));
    tensors.add(as_output(shape_.packed("out")));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const auto lengths = fill_seq_lengths(shape_, step, tensors.at("lengths"));
    const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    fill_bits(tensors.at("x"), 0, tokens, mix(step.seed, 1));
    fill_dead_bits(tensors.at("x"), tokens, shape_.tokens, step.dead_rows);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_pack_seq_params params{};
    params.x = tensors.get<void>("x");
    params.lengths = tensors.get<std::int32_t>("lengths");
    params.out = tensors.get<void>("out");
    params.tokens = shape_.tokens;
    params.sequences = shape_.sequences;
    params.max_length = shape_.max_length;
    params.columns = shape_.columns;
    params.x_row_stride = shape_.row_stride();
    params.element_bytes = static_cast<std::int32_t>(size_of(shape_.dtype));
    params.pad_bits = shape_.pad_bits();
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    const auto token_of_row =
        reference::pack_seq(integers_of(tensors.at("lengths")), shape_.max_length);
    HostTensor expected(shape_.packed("out"));
    for (std::size_t i = 0; i < expected.bytes().size(); ++i) {
      const std::size_t byte = i % size_of(shape_.dtype);
      expected.bytes()[i] = static_cast<std::byte>(shape_.pad_bits() >> (8 * byte));
    }
    for (std::int64_t row = 0; row < std::ssize(token_of_row); ++row) {
      if (token_of_row[row] >= 0) copy_row(tensors.at("x"), token_of_row[row], expected, row);
    }
    return {judge_bits(tensors.at("out"), expected, {}, "differs from the reference")};
  }

  double cost() const override { return shape_.cost(); }
  double checked_factor() const override { return 1.5; }

 private:
  SeqPackingShape shape_;
};

}  // namespace

OpDefinition define_pack_seq() {
  OpDefinition op;
  op.name = "pack_seq";
  op.summary = "rows of sequences of different length, padded to one length";
  describe_seq_packing(op);
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<PackSeqProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
