// SPDX-License-Identifier: Apache-2.0
#include "golden/capture.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "cases/tables/contract.h"
#include "cases/tensors/fill.h"

namespace plumb::golden {

namespace {

using cases::HostTensor;
using cases::Role;

// A tensor larger than kInFull bytes is stored as checksums of all its rows, and the values of one
// row or of as many as fit into kSampled bytes. Rows longer than kLongestRow are stored as
// checksums only. If a row is no longer than its checksum, the tensor is stored in full.
constexpr std::size_t kInFull = 4 << 10, kSampled = 2 << 10, kLongestRow = 32 << 10;

std::vector<std::int64_t> strides_of(const HostTensor& tensor) {
  if (!tensor.spec().strides.empty()) return tensor.spec().strides;
  std::vector<std::int64_t> strides(tensor.spec().shape.size(), 1);
  for (std::size_t i = strides.size(); i > 1; --i) {
    strides[i - 2] = strides[i - 1] * tensor.spec().shape[i - 1];
  }
  return strides;
}

// Elements that the op promises, packed row by row; zeros in place of the others.
std::vector<std::byte> packed(const HostTensor& tensor, const cases::RowMask& promised,
                              const cases::ColumnRanges& columns) {
  const std::size_t size = cases::size_of(tensor.spec().dtype);
  const std::size_t row_bytes = static_cast<std::size_t>(tensor.columns()) * size;
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.rows()) * row_bytes);
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    if (!cases::is_promised(promised, row)) continue;
    const cases::ColumnRange range = cases::columns_of(columns, tensor, row);
    if (range.end <= range.begin) continue;
    const auto begin = static_cast<std::size_t>(range.begin) * size;
    std::memcpy(
        bytes.data() + static_cast<std::size_t>(row) * row_bytes + begin,
        tensor.bytes().data() + static_cast<std::size_t>(tensor.row_offset(row)) * size + begin,
        static_cast<std::size_t>(range.end - range.begin) * size);
  }
  return bytes;
}

// Rows to store: the first, the last, and others drawn with a seed from the output's name, so that
// they are the same each time.
std::vector<std::int64_t> sample_of(std::int64_t rows, std::size_t row_bytes, std::uint64_t seed) {
  const std::int64_t count =
      static_cast<std::int64_t>(kSampled / std::max<std::size_t>(row_bytes, 1));
  std::vector<std::int64_t> chosen{0};
  if (row_bytes > kLongestRow) return {};
  if (count > 1 && rows > 1) chosen.push_back(rows - 1);
  for (std::uint64_t i = 0; static_cast<std::int64_t>(chosen.size()) < std::min(count, rows); ++i) {
    const std::int64_t row = cases::integer(seed, i, 0, rows - 1);
    if (std::find(chosen.begin(), chosen.end(), row) == chosen.end()) chosen.push_back(row);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// An output that has all its values.
HostTensor host_tensor_of(const TensorGolden& whole) {
  HostTensor tensor(
      {.name = whole.name, .dtype = whole.dtype, .shape = {whole.rows(), whole.columns()}});
  std::memcpy(tensor.bytes().data(), whole.values.data(), whole.values.size());
  return tensor;
}

// The part of an output that the store keeps.
TensorGolden stored_part(const TensorGolden& whole, std::uint64_t seed) {
  const std::size_t row_bytes = whole.row_bytes();
  if (whole.values.size() <= kInFull || row_bytes <= sizeof(XXH64_hash_t)) return whole;
  TensorGolden part = whole;
  part.sketch = sketch_of(host_tensor_of(whole));
  for (std::int64_t row = 0; row < whole.rows(); ++row) {
    part.row_checksums.push_back(
        XXH3_64bits(whole.values.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes));
  }
  part.sampled_rows = sample_of(whole.rows(), row_bytes, seed);
  part.values.clear();
  for (const std::int64_t row : part.sampled_rows) {
    const auto* from = whole.values.data() + static_cast<std::size_t>(row) * row_bytes;
    part.values.insert(part.values.end(), from, from + row_bytes);
  }
  return part;
}

// Largest difference between two right results by their arithmetic. Where the bound is 6 sigma
// their errors are independent; where it is the worst case they may have opposite directions.
double arithmetic_difference(const reference::Estimate& estimate, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  if (estimate.structured) return 2 * estimate.arithmetic(i);
  return std::min(2 * estimate.worst[at], 6 * std::sqrt(2.0) * estimate.sigma[at]);
}

}  // namespace

bool wants_golden(const cases::Case& which) {
  return which.row.golden && which.scenario->mode == cases::Scenario::Mode::eager;
}

CaseGolden golden_of(const cases::Case& which, const cases::Problem& problem,
                     const cases::Launched& launched, std::vector<TensorGolden>* whole) {
  CaseGolden golden;
  golden.id = which.id();
  const auto& [step, tensors, declared] = launched;
  for (const HostTensor& tensor : tensors.all()) {
    const cases::TensorSpec& spec = tensor.spec();
    if (spec.role == Role::input) golden.inputs[spec.name] = digest_of(tensor.bytes());
    if (spec.role != Role::output && spec.role != Role::state) continue;
    const auto canonical = problem.canonical(tensors, spec, declared);
    TensorGolden output{.name = spec.name,
                        .dtype = spec.dtype,
                        .format = spec.format,
                        .scale_layout = spec.scale_layout,
                        .shape = spec.shape,
                        .strides = strides_of(tensor),
                        .values = packed(canonical ? *canonical : tensor,
                                         problem.promised_rows_by_inputs(step, tensors, spec),
                                         problem.promised_columns(tensors, spec))};
    output.digest = digest_of(output.values);
    golden.outputs.push_back(stored_part(output, cases::seed_of(golden.id + "/" + spec.name)));
    if (whole != nullptr) whole->push_back(std::move(output));
  }
  return golden;
}

GoldenCapture::GoldenCapture(const cases::Case& any, const cases::RunOptions& options)
    : properties_(options.open(options.platform, {})->properties()), plugin_(options.plugin) {
  const cases::Case which =
      cases::under_contract(options.implementation(options.platform, false), any);
  problem_ = which.op->make_problem(which.row, properties_);
  step_.seed = cases::mix(cases::seed_of(which.id()), 100);
  step_.live = problem_->capacity();
  cases::CaseResult result;
  const cases::Point point;
  cases::Session session(*problem_, which, point, options, result);
  cases::Buffers buffers = session.make_buffers();
  session.set_inputs(step_, buffers);
  session.poison(buffers, point.poison);
  session.launch(buffers);
  declared_ = session.declared();
  std::vector<std::string> damage;
  const cases::TensorSet got = session.read_back(buffers, point.poison, damage);
  // copies, because the inputs belong to the session
  for (const HostTensor& tensor : got.all()) stored_.add(HostTensor(tensor));
  rejected_ = std::move(damage);
  rejects_all_ = !rejected_.empty();

  golden_ = golden_of(which, *problem_, {step_, stored_, declared_}, &outputs_);
}

void GoldenCapture::judge() const {
  if (std::exchange(judged_, true)) return;
  for (const cases::Expectation& one :
       problem_->expect(step_, stored_, cases::to_reference(declared_), declared_)) {
    keep_bounds(one);
    reject(one, cases::compare(one).failures);
  }
}

// A tensor made for one verdict names the output that it was made from.
void GoldenCapture::reject(const cases::Expectation& one,
                           const std::vector<std::string>& failures) const {
  if (failures.empty()) return;
  rejected_.insert(rejected_.end(), failures.begin(), failures.end());
  const cases::TensorSpec& spec = one.stored->spec();
  const std::string& output = spec.origin ? spec.origin->tensor : spec.name;
  if (stored_.contains(output)) {
    rejected_outputs_.insert(output);
  } else {
    rejects_all_ = true;
  }
}

// Keeps the bounds if the estimate has the shape of the tensor.
void GoldenCapture::keep_bounds(const cases::Expectation& one) const {
  const std::string& name = one.stored->spec().name;
  const reference::Estimate* estimate = one.truth->estimate();
  if (estimate == nullptr || !stored_.contains(name)) return;
  const HostTensor& whole = stored_.at(name);
  if (whole.rows() != estimate->rows || whole.columns() != estimate->columns) return;
  Bounds& bounds = bounds_[name];
  for (std::int64_t i = 0; i < estimate->rows * estimate->columns; ++i) {
    bounds.arithmetic.push_back(arithmetic_difference(*estimate, i));
    bounds.rounding.push_back(2 * (estimate->bound(i) - estimate->arithmetic(i)));
  }
}

const std::vector<std::string>& GoldenCapture::rejected() const {
  judge();
  return rejected_;
}

bool GoldenCapture::rejects(const std::string& output) const {
  judge();
  return rejects_all_ || rejected_outputs_.contains(output);
}

const GoldenCapture::Bounds* GoldenCapture::bounds_of(const std::string& output) const {
  judge();
  const auto found = bounds_.find(output);
  return found == bounds_.end() ? nullptr : &found->second;
}

}  // namespace plumb::golden
