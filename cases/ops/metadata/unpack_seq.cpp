// SPDX-License-Identifier: Apache-2.0
//
// Cases of unpack_seq. Capacity and live count are sequences; dead ones are empty.
#include "reference/metadata/unpack_seq.h"

#include "cases/ops/metadata/seq_packing.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

class UnpackSeqProblem : public Problem {
 public:
  explicit UnpackSeqProblem(const Row& row) : shape_(row) {}

  std::int64_t capacity() const override { return shape_.sequences; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(shape_.packed("x"));
    tensors.add(column("lengths", shape_.sequences));
    add_persistent(tensors, shape_.flat("out"));
    return tensors;
  }

  // Padding rows hold what dead rows hold, in live sequences too.
  void fill(const Step& step, TensorSet& tensors) const override {
    const auto lengths = fill_seq_lengths(shape_, step, tensors.at("lengths"));
    for (std::int64_t sequence = 0; sequence < shape_.sequences; ++sequence) {
      const std::int64_t first = sequence * shape_.max_length;
      fill_bits(tensors.at("x"), first, first + lengths[sequence], mix(step.seed, 1));
      fill_dead_bits(tensors.at("x"), first + lengths[sequence], first + shape_.max_length,
                     step.dead_rows);
    }
    fill_bits(tensors.at("out_before"), 0, shape_.tokens, mix(step.seed, 2));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_unpack_seq_params params{};
    params.x = tensors.get<void>("x");
    params.lengths = tensors.get<std::int32_t>("lengths");
    params.out = tensors.get<void>("out");
    params.tokens = shape_.tokens;
    params.sequences = shape_.sequences;
    params.max_length = shape_.max_length;
    params.columns = shape_.columns;
    params.out_row_stride = shape_.row_stride();
    params.element_bytes = static_cast<std::int32_t>(size_of(shape_.dtype));
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    const auto row_of_token =
        reference::unpack_seq(integers_of(tensors.at("lengths")), shape_.max_length);
    HostTensor expected = tensors.at("out_before");
    for (std::int64_t token = 0; token < std::ssize(row_of_token); ++token) {
      copy_row(tensors.at("x"), row_of_token[token], expected, token);
    }
    return {judge_bits(tensors.at("out"), expected, {}, "differs from the reference")};
  }

  double cost() const override { return shape_.cost(); }
  double checked_factor() const override { return 1.5; }

 private:
  SeqPackingShape shape_;
};

}  // namespace

OpDefinition define_unpack_seq() {
  OpDefinition op;
  op.name = "unpack_seq";
  op.summary = "drops the padding of packed sequences";
  describe_seq_packing(op);
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<UnpackSeqProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
