// SPDX-License-Identifier: Apache-2.0
//
// A row is moved between problems of different sizes by the shapes of their tensors: what grows in
// proportion to the batch belongs to rows, of which one is overwritten with the row under test;
// everything else (weights, caches) is that of the largest problem. Whether that really is the same
// row, exact inputs tell: there every honest order of operations gives nearly the same result.
#include "cases/invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "cases/fill.h"

namespace plumb::cases {

namespace {

class NotMeasured : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The parameter to which the op's capacity is proportional.
std::string find_batch_parameter(const OpDefinition& op, const Row& row,
                                 const device::Properties& properties) {
  for (const char* name : {"tokens", "requests", "rows", "sequences"}) {
    if (!row.integers.contains(name)) continue;
    std::int64_t capacity[2];
    for (const std::int64_t size : {1, 2}) {
      Row sized = row;
      sized.integers[name] = size;
      capacity[size - 1] = op.make_problem(sized, properties)->capacity();
    }
    if (capacity[0] >= 1 && capacity[1] == 2 * capacity[0]) return name;
  }
  throw NotMeasured("no parameter is the number of its rows");
}

bool is_real(Dtype dtype) { return dtype == Dtype::bf16 || dtype == Dtype::f32; }

// How a tensor depends on the batch.
enum class Scope { row, shared, other };

// The part of a tensor that one row of the batch owns: `count` rows of the last dimension from
// `row` on, of each `length` columns from `column` on.
struct Piece {
  std::int64_t row = 0, column = 0, count = 0, length = 0;
};
Piece piece_of(const HostTensor& tensor, std::int64_t size, std::int64_t position) {
  if (tensor.spec().shape.size() == 1) {
    const std::int64_t length = tensor.columns() / size;
    return {0, position * length, 1, length};
  }
  const std::int64_t count = tensor.rows() / size;
  return {position * count, 0, count, tensor.columns()};
}

// move(byte offset of each piece, bytes).
void for_each_part(const HostTensor& tensor, std::int64_t size, std::int64_t position,
                   const auto& move) {
  const Piece piece = piece_of(tensor, size, position);
  const std::size_t element = size_of(tensor.spec().dtype);
  for (std::int64_t row = piece.row; row < piece.row + piece.count; ++row) {
    move(static_cast<std::size_t>(tensor.row_offset(row) + piece.column) * element,
         static_cast<std::size_t>(piece.length) * element);
  }
}

class Measurement {
 public:
  Measurement(const OpDefinition& op, const Row& row, std::string batch,
              const std::vector<std::int64_t>& sizes, Fill fill, const RunOptions& options)
      : op_(op), row_(row), batch_(std::move(batch)), fill_(fill), options_(options) {
    properties_ = options_.open(options_.platform, {})->properties();
    entry_ = device::find_entry(options_.implementation(options_.platform, false), op.name);
    if (entry_ == nullptr) throw NotMeasured("the implementation has no such op");
    largest_ = std::max<std::int64_t>(2, *std::max_element(sizes.begin(), sizes.end()));
    seed_ = seed_of(fmt::format("{}/{}/invariance", op.name, row.name));
    const auto problem = problem_of(largest_);
    base_ = problem->make_tensors();
    problem->fill(step_of(largest_, 0), base_);
    classify();
  }

  // The row's own part of every output that has one.
  std::vector<std::vector<std::byte>> run(std::int64_t size, bool last) {
    const std::int64_t position = last ? size - 1 : 0;
    const auto problem = problem_of(size);
    TensorSet tensors = problem->make_tensors();
    problem->fill(step_of(size, size), tensors);
    for (HostTensor& tensor : tensors.all()) {
      if (tensor.spec().role == Role::input) put_in(tensor, size, position);
    }
    launch(*problem, tensors);
    std::vector<std::vector<std::byte>> outputs;
    for (const HostTensor& tensor : tensors.all()) {
      if (is_compared(tensor.spec())) outputs.push_back(take_out(tensor, size, position));
    }
    return outputs;
  }

  std::optional<BatchDifference> compare(const std::vector<std::vector<std::byte>>& alone,
                                         const std::vector<std::vector<std::byte>>& batched) const {
    const TensorSet tensors = problem_of(1)->make_tensors();
    std::size_t index = 0;
    for (const HostTensor& tensor : tensors.all()) {
      if (!is_compared(tensor.spec())) continue;
      const auto& a = alone[index];
      const auto& b = batched[index++];
      if (a != b) return describe(tensor, a, b);
    }
    return std::nullopt;
  }

 private:
  std::unique_ptr<Problem> problem_of(std::int64_t size) const {
    Row sized = row_;
    sized.integers[batch_] = size;
    return op_.make_problem(sized, properties_);
  }

  Step step_of(std::int64_t size, std::int64_t salt) const {
    return {.seed = mix(seed_, static_cast<std::uint64_t>(salt)),
            .live = problem_of(size)->capacity(),
            .fill = fill_};
  }

  // By the first dimension at sizes 1, 2 and the largest.
  void classify() {
    const TensorSet one = problem_of(1)->make_tensors(), two = problem_of(2)->make_tensors();
    bool any_output = false;
    for (const HostTensor& tensor : base_.all()) {
      const TensorSpec& spec = tensor.spec();
      const Scope scope = scope_of(one.at(spec.name), two.at(spec.name), tensor);
      const bool is_result = spec.role == Role::output && is_list(spec);
      if (scope == Scope::other && (spec.role == Role::input || is_result)) {
        throw NotMeasured(
            fmt::format("{} says where rows lie, so a row cannot be moved alone", spec.name));
      }
      if (scope != Scope::row && !spec.starts_as.empty()) {
        throw NotMeasured(fmt::format("{} is no list of rows", spec.name));
      }
      scopes_.emplace_back(spec.name, scope);
      any_output = any_output || is_compared(spec);
    }
    if (!any_output) throw NotMeasured("no output has a part for each row");
  }

  Scope scope_of(const HostTensor& one, const HostTensor& two, const HostTensor& most) const {
    const auto& a = one.spec().shape;
    const auto& b = two.spec().shape;
    const auto& c = most.spec().shape;
    if (most.spec().sparse) return Scope::shared;
    const bool same_rows = std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end()) &&
                           std::equal(a.begin() + 1, a.end(), c.begin() + 1, c.end());
    if (!same_rows) return Scope::other;
    if (b[0] == 2 * a[0] && c[0] == largest_ * a[0]) return Scope::row;
    if (a[0] == c[0]) return Scope::shared;
    // A cache grows with the batch, in whole blocks; a list of offsets by one element a row.
    return is_list(one.spec()) ? Scope::other : Scope::shared;
  }

  static bool is_list(const TensorSpec& spec) {
    return std::all_of(spec.shape.begin() + 1, spec.shape.end(),
                       [](std::int64_t extent) { return extent == 1; });
  }

  Scope scope_of(std::string_view name) const {
    return std::find_if(scopes_.begin(), scopes_.end(),
                        [&](const auto& entry) { return entry.first == name; })
        ->second;
  }

  bool is_compared(const TensorSpec& spec) const {
    return spec.role == Role::output && scope_of(spec.name) == Scope::row;
  }

  void put_in(HostTensor& tensor, std::int64_t size, std::int64_t position) const {
    const HostTensor& from = base_.at(tensor.spec().name);
    if (scope_of(tensor.spec().name) == Scope::shared) {
      tensor = from;
      return;
    }
    std::vector<std::byte> part = take_out(from, largest_, 0);
    const std::byte* next = part.data();
    for_each_part(tensor, size, position, [&](std::size_t at, std::size_t bytes) {
      std::memcpy(tensor.bytes().data() + at, next, bytes);
      next += bytes;
    });
  }

  static std::vector<std::byte> take_out(const HostTensor& tensor, std::int64_t size,
                                         std::int64_t position) {
    std::vector<std::byte> part;
    for_each_part(tensor, size, position, [&](std::size_t at, std::size_t bytes) {
      const std::byte* from = tensor.bytes().data() + at;
      part.insert(part.end(), from, from + bytes);
    });
    return part;
  }

  // Uploads, calls the op once, and reads the outputs back into `tensors`.
  void launch(const Problem& problem, TensorSet& tensors) const {
    const auto device = options_.open(options_.platform, {});
    const device::Stream stream = device->create_stream();
    DeviceTensors addresses;
    for (const HostTensor& tensor : tensors.all()) {
      const TensorSpec& spec = tensor.spec();
      const std::size_t bytes = std::max<std::size_t>(device_bytes(tensor), 1);
      auto* memory = static_cast<std::byte*>(spec.sparse ? device->allocate_sparse(bytes, spec.name)
                                                         : device->allocate(bytes, spec.name));
      addresses.set(spec.name, memory);
      const HostTensor& from = spec.starts_as.empty() ? tensor : tensors.at(spec.starts_as);
      for_each_piece(from, [&](std::size_t there, std::size_t here, std::size_t count) {
        device->copy(memory + there, from.bytes().data() + here, count, stream);
      });
    }
    const auto state = problem.make_state(addresses);
    const plumb_status status = problem.launch(*entry_, addresses, state.get(), stream);
    if (status == PLUMB_UNSUPPORTED) throw NotMeasured("the implementation refuses a size");
    if (status != PLUMB_OK) {
      throw device::DeviceError(device::Fault::other,
                                "the launch failed " + device->take_launch_error());
    }
    for (HostTensor& tensor : tensors.all()) {
      if (!is_compared(tensor.spec())) continue;
      device->copy(tensor.bytes().data(), addresses.get<void>(tensor.spec().name),
                   tensor.bytes().size(), stream);
    }
    device->synchronize(stream);
  }

  BatchDifference describe(const HostTensor& tensor, const std::vector<std::byte>& a,
                           const std::vector<std::byte>& b) const;

  const OpDefinition& op_;
  const Row& row_;
  const std::string batch_;
  const Fill fill_;
  const RunOptions& options_;
  device::Properties properties_;
  const plumb_op_entry* entry_ = nullptr;
  std::int64_t largest_ = 0;
  std::uint64_t seed_ = 0;
  TensorSet base_;  // of the largest size; its first row is the one under test
  std::vector<std::pair<std::string, Scope>> scopes_;
};

// The bits of an element as a number that grows with its value, so that neighbours differ by one.
std::int64_t ordered(const std::byte* element, Dtype dtype) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, size_of(dtype));
  const auto ordered_bits = [&](std::uint64_t sign) {
    const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
    return (bits & sign) != 0 ? -magnitude : magnitude;
  };
  switch (dtype) {
    case Dtype::bf16: return ordered_bits(0x8000);
    case Dtype::f32: return ordered_bits(0x80000000);
    case Dtype::i32: return static_cast<std::int32_t>(bits);
    default: return static_cast<std::int64_t>(bits);
  }
}

BatchDifference Measurement::describe(const HostTensor& tensor, const std::vector<std::byte>& a,
                                      const std::vector<std::byte>& b) const {
  const std::size_t size = size_of(tensor.spec().dtype);
  BatchDifference difference;
  difference.tensor = tensor.spec().name;
  HostTensor first = tensor, second = tensor;
  double norm = 0, distance = 0;
  for (std::size_t i = 0; i < a.size(); i += size) {
    const auto element = static_cast<std::int64_t>(i / size);
    const std::int64_t row = element / tensor.columns(), column = element % tensor.columns();
    const std::size_t at = static_cast<std::size_t>(tensor.row_offset(row) + column) * size;
    std::memcpy(&first.bytes()[at], &a[i], size);
    std::memcpy(&second.bytes()[at], &b[i], size);
    const double alone = first.value(row, column), in_batch = second.value(row, column);
    norm += alone * alone;
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    distance += (alone - in_batch) * (alone - in_batch);
    if (difference.elements++ > 0) continue;
    difference.coordinates = tensor.coordinates(row, column);
    difference.alone = alone;
    difference.in_batch = in_batch;
    difference.ulp = std::abs(static_cast<double>(ordered(&a[i], tensor.spec().dtype)) -
                              static_cast<double>(ordered(&b[i], tensor.spec().dtype)));
  }
  const bool comparable = is_real(tensor.spec().dtype) && std::isfinite(distance) && norm > 0;
  difference.share = comparable ? std::sqrt(distance / norm) : 1;
  return difference;
}

bool has_real_input(const Problem& problem) {
  const TensorSet tensors = problem.make_tensors();
  return std::any_of(tensors.all().begin(), tensors.all().end(), [](const HostTensor& tensor) {
    return tensor.spec().role == Role::input && is_real(tensor.spec().dtype);
  });
}

// Exact inputs leave little to round, integers nothing: what differs there is not the same row.
void refuse_what_is_no_rounding(const std::vector<BatchDifference>& differs) {
  constexpr double kRoundings = 1.0 / 64;
  for (const BatchDifference& difference : differs) {
    if (difference.share <= kRoundings) continue;
    throw NotMeasured(fmt::format("its rows depend on each other: {} is another one at size {}",
                                  difference.tensor, difference.size));
  }
}

std::vector<BatchDifference> measure(Measurement measurement,
                                     const std::vector<std::int64_t>& sizes) {
  std::vector<BatchDifference> differs;
  const auto alone = measurement.run(1, false);
  if (measurement.compare(alone, measurement.run(1, false))) {
    throw NotMeasured("not deterministic: alone, it differs from itself");
  }
  for (const std::int64_t size : sizes) {
    for (const bool last : {false, true}) {
      auto difference = measurement.compare(alone, measurement.run(size, last));
      if (!difference) continue;
      difference->size = size;
      difference->last = last;
      differs.push_back(std::move(*difference));
      break;
    }
  }
  return differs;
}

}  // namespace

std::vector<std::int64_t> default_batch_sizes(const device::Properties& properties) {
  std::vector<std::int64_t> sizes{1, 2, 4, 8, 16, 24, 32, 64};
  if (properties.simulated) return sizes;
  sizes.resize(6);
  for (std::int64_t size = 32; size <= 256; size += 8) sizes.push_back(size);
  for (std::int64_t size = 272; size <= 512; size += 16) sizes.push_back(size);
  return sizes;
}

InvarianceResult measure_invariance(const OpDefinition& op, const Row& row,
                                    const std::vector<std::int64_t>& sizes,
                                    const RunOptions& options) {
  InvarianceResult result;
  result.op = op.name;
  result.row = row.name;
  result.platform = options.platform;
  try {
    const auto properties = options.open(options.platform, {})->properties();
    result.batch = find_batch_parameter(op, row, properties);
    result.sizes = sizes;
    const auto with = [&](Fill fill) {
      return measure(Measurement(op, row, result.batch, sizes, fill, options), sizes);
    };
    refuse_what_is_no_rounding(with(Fill::exact));
    result.differs = with(Fill::real);
    if (!has_real_input(*op.make_problem(row, properties))) {
      refuse_what_is_no_rounding(result.differs);
    }
  } catch (const NotMeasured& reason) {
    result.not_measured = reason.what();
  } catch (const BadRow& reason) {
    result.not_measured = fmt::format("the row does not exist in every size: {}", reason.what());
  } catch (const device::DeviceError& error) {
    result.not_measured = fmt::format("{}: {}", device::name_of(error.fault()), error.what());
  }
  if (!result.not_measured.empty()) result.sizes.clear();
  return result;
}

}  // namespace plumb::cases
