// SPDX-License-Identifier: Apache-2.0
//
// Cases of build_ragged_indices_from_dense. Capacity and live count are rows; dead rows have a
// length of 0 or below.
#include "reference/metadata/build_ragged_indices_from_dense.h"

#include <limits>

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using reference::DenseIndices;

constexpr std::int64_t kFarStride = std::int64_t{1} << 30;  // third row: 2^31 elements away

class BuildRaggedProblem : public Problem {
 public:
  explicit BuildRaggedProblem(const Row& row)
      : rows_(row.integer("rows")),
        width_(row.integer("width")),
        gap_(row.integer("row_gap")),
        num_rows_(row.integer("num_rows")),
        far_(row.integer("far") != 0) {
    if (far_ && (width_ == 0 || kFarStride % width_ != 0 || gap_ != 0)) {
      throw BadRow(row.where + ": far rows need a width that is a power of two, and no row_gap");
    }
  }

  std::int64_t capacity() const override { return rows_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    TensorSpec indices = table("indices", rows_, width_, gap_);
    for (std::int64_t row = 0; far_ && row < rows_; ++row) {
      indices.sparse = true;
      indices.placement.push_back(row * (kFarStride / width_));
    }
    tensors.add(indices);
    tensors.add(column("lengths", rows_));
    tensors.add(as_output(column("indptr", rows_ + 1)));
    add_persistent(tensors, column("flat", rows_ * width_));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& indices = tensors.at("indices");
    for (std::int64_t row = 0; row < step.live; ++row) {
      auto* to = indices.row<std::int32_t>(row);
      for (std::int64_t j = 0; j < width_; ++j) to[j] = index(step, row * width_ + j);
    }
    fill_dead_integers(indices, step.live, rows_, step.dead_rows);
    fill_lengths(step, tensors.at("lengths").data<std::int32_t>());
    fill_before(tensors.at("flat_before"), step.seed);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_build_ragged_indices_from_dense_params params{};
    params.indices = tensors.get<std::int32_t>("indices");
    params.lengths = tensors.get<std::int32_t>("lengths");
    params.indptr = tensors.get<std::int32_t>("indptr");
    params.flat = tensors.get<std::int32_t>("flat");
    params.rows = rows_;
    params.width = width_;
    params.indices_row_stride = far_ ? kFarStride : width_ + gap_;
    params.num_rows = num_rows_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    DenseIndices input;
    input.indices = tensors.at("indices").data<std::int32_t>();
    input.lengths = tensors.at("lengths").data<std::int32_t>();
    input.rows = rows_;
    input.width = width_;
    input.row_stride = width_ + gap_;
    input.num_rows = num_rows_;
    const auto expected = build_ragged_indices_from_dense(input);
    return {judge_exact(tensors.at("indptr"), expected.indptr, {}),
            judge_ragged(tensors.at("flat"), front_over(expected.flat, tensors.at("flat_before")),
                         expected.indptr, "rows")};
  }

  double cost() const override { return indptr_cost(rows_) + row_blocks_cost(rows_, width_); }
  double checked_factor() const override { return 4; }

 private:
  // In range but for one in five under real fills, and for most under adversarial ones.
  std::int32_t index(const Step& step, std::int64_t place) const {
    constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
    const std::int64_t range = num_rows_ > 0 ? num_rows_ : 1 << 20;
    const std::uint64_t bits = random_bits(mix(step.seed, 1), place);
    const auto inside = static_cast<std::int32_t>(static_cast<std::int64_t>(bits >> 33) % range);
    if (step.fill == Fill::exact) return static_cast<std::int32_t>(place % range);
    if (step.fill == Fill::real) return bits % 5 == 0 ? -1 : inside;
    const auto end = static_cast<std::int32_t>(num_rows_ >= 0 ? num_rows_ : kMost);
    const std::int32_t edges[] = {-1, 0, end - 1, end, kMost, -kMost - 1, -2, inside};
    return edges[bits % std::size(edges)];
  }

  // Also beyond the width and below 0: the op clamps. Not by much, so that what an implementation
  // that does not clamp writes is near enough to be seen.
  void fill_lengths(const Step& step, std::int32_t* lengths) const {
    const std::vector<std::int64_t> inside = live_lengths(step, rows_, step.live, width_);
    const auto width = static_cast<std::int32_t>(width_);
    const std::int32_t beyond[] = {width + 1, -1, width + 7, -9};
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::uint64_t bits = random_bits(mix(step.seed, 2), row);
      const bool outside = step.fill == Fill::adversarial && bits % 2 == 0;
      lengths[row] = outside ? beyond[bits / 2 % 4] : static_cast<std::int32_t>(inside[row]);
      if (row < step.live) continue;
      const bool negative = step.dead_rows == DeadRows::nan || step.dead_rows == DeadRows::huge;
      lengths[row] = negative ? -1 : 0;
    }
  }

  std::int64_t rows_, width_, gap_, num_rows_;
  bool far_;
};

}  // namespace

OpDefinition define_build_ragged_indices_from_dense() {
  OpDefinition op;
  op.name = "build_ragged_indices_from_dense";
  op.summary = "prefixes of the rows of a dense table as one ragged list";
  op.parameters = {
      {"rows", 5, 0, 65536, "padded rows"},
      {"width", 128, 0, 65536, "columns of the dense table"},
      {"row_gap", 0, 0, 65536, "elements between two rows"},
      {"num_rows", -1, -1, std::int64_t{1} << 31, "entries from here on are -1; -1: none"},
      {"far", 0, 0, 1, "rows 2^30 elements apart"}};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<BuildRaggedProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
