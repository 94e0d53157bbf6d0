// SPDX-License-Identifier: Apache-2.0
#include "cases/recorded/recorded_problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "cases/recorded/recorded_file.h"
#include "cases/tables/given_call.h"
#include "cases/tables/op_table.h"
#include "cases/tensors/fill.h"
#include "device/device.h"

namespace plumb::cases {

namespace {

// The call of one file. Kept until the process ends.
struct RecordedCallOfFile {
  std::string path, op, bytes;
  std::vector<Bytes> laid_out;  // dense copies of tensors that the file stores in blocks
  GivenCall given;              // only its tensors are set
  // Real-valued members whose name is also a row parameter. A case file cannot set them, because it
  // would set the parameter.
  std::map<std::string, float, std::less<>> hidden_reals;
  // Value of the op's row_count parameter in the recording; 0: the op has none.
  std::int64_t rows = 0;
};

std::map<std::string, RecordedCallOfFile, std::less<>>& recorded_calls() {
  static std::map<std::string, RecordedCallOfFile, std::less<>> calls;
  return calls;
}

const RecordedCallOfFile& call_of(const OpDefinition& op, const Row& row) {
  const auto found = recorded_calls().find(row.word(kRecorded));
  if (found == recorded_calls().end() || found->second.op != op.name) {
    throw BadRow(fmt::format("{}: {}/{} is of a recorded call whose file was not given", row.where,
                             op.name, row.name));
  }
  return found->second;
}

const std::byte* dense(const RecordedTensor& tensor, RecordedCallOfFile& call) {
  if (!tensor.blocks) return tensor.bytes.data();
  Bytes& whole = call.laid_out.emplace_back(tensor.dense_bytes());
  const std::size_t block =
      tensor.blocks->empty() ? 0 : tensor.bytes.size() / tensor.blocks->size();
  for (std::size_t i = 0; i < tensor.blocks->size(); ++i) {
    std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(i * block), block,
                whole.begin() + static_cast<std::ptrdiff_t>(block) * (*tensor.blocks)[i]);
  }
  return whole.data();
}

GivenTensor given_of(const RecordedTensor& tensor, RecordedCallOfFile& call) {
  GivenTensor given{.dtype = tensor.dtype,
                    .shape = tensor.shape,
                    .strides = contiguous_strides(tensor.shape),
                    .data = dense(tensor, call)};
  for (std::int64_t& stride : given.strides) {
    stride *= static_cast<std::int64_t>(size_of(tensor.dtype));
  }
  return given;
}

constexpr std::string_view kBeforeCall = "_before";

// For each input "<name>_before", adds the output <name>, which the op updates in place, with the
// same bytes and layout.
void add_in_place(GivenCall& given) {
  const auto inputs = given.tensors;
  for (const auto& [name, tensor] : inputs) {
    if (!name.ends_with(kBeforeCall)) continue;
    given.tensors.emplace(name.substr(0, name.size() - kBeforeCall.size()), tensor);
  }
}

// The row with the recorded number of rows, even if --set has reduced it.
Row whole_row(const OpDefinition& op, const RecordedCallOfFile& call, Row row) {
  if (call.rows > 0) row.integers.find(op.row_count)->second = call.rows;
  row.reals.insert(call.hidden_reals.begin(), call.hidden_reals.end());
  return row;
}

// Throws BadRow if the recorded tensors do not have the shapes that the row's parameters require.
// The case file may have been edited, or changed by --set.
void check_shapes(const OpDefinition& op, const RecordedCallOfFile& call, const Row& row,
                  const device::Properties& platform) {
  GivenCall given = call.given;
  for (const Parameter& parameter : op.parameters) {
    given.integers[std::string(parameter.name)] = row.integer(parameter.name);
  }
  for (const std::string_view word : op.words()) {
    if (!row.word(word).empty()) given.words[std::string(word)] = row.word(word);
  }
  given.reals = row.reals;
  row_of(op, given, platform, false);
}

// Finds each tensor's row dimension by comparing its shape with that for one row more. Empty if
// rows cannot be separated.
std::map<std::string, RowAxis, std::less<>> axes_of(const OpDefinition& op, const Row& row,
                                                    const device::Properties& platform,
                                                    const Problem& whole,
                                                    const TensorSet& recorded) {
  std::map<std::string, RowAxis, std::less<>> axes;
  if (op.row_count.empty() || !whole.rows_have_places()) return axes;
  Row more = row;
  const std::int64_t rows = more.integers.find(op.row_count)->second++;
  try {
    const TensorSet larger = op.make_problem(more, platform)->make_tensors();
    const TensorSet own = whole.make_tensors();
    for (const HostTensor& tensor : own.all()) {
      const TensorSpec& spec = tensor.spec();
      if (spec.role != Role::input && spec.role != Role::output) continue;
      const auto axis = find_row_axis(spec, rows, larger.at(spec.name).spec(), rows + 1);
      if (!axis) continue;
      if (recorded.at(spec.name).spec().shape != spec.shape) return {};
      axes.emplace(spec.name, *axis);
    }
  } catch (const std::logic_error&) {  // a dimension is not proportional to the rows
    return {};
  } catch (const BadRow&) {  // the op does not allow this size
    return {};
  }
  return axes;
}

plumb_numerics some_numerics(std::string_view op) {
  const device::OpEntry* const own =
      device::find_entry(device::builtin_implementation("sim-sm90"), op);
  if (own != nullptr) return own->numerics;
  return {.product = PLUMB_F32, .accumulator = PLUMB_F32, .chains = 1, .probability = PLUMB_BF16};
}

}  // namespace

CaseFile take_recorded(std::string bytes, const std::string& path) {
  DecodedRecording decoded = decode_recorded(bytes, path);
  const OpDefinition* known = nullptr;
  try {
    known = &find_op(decoded.call.op);
  } catch (const BadRow& error) {
    throw BadRow(fmt::format("{}: {}", path, error.what()));
  }
  const auto [at, is_new] = recorded_calls().try_emplace(decoded.digest);
  RecordedCallOfFile& call = at->second;
  if (!is_new) return {path, decoded.case_file};
  try {
    call.path = path;
    call.op = decoded.call.op;
    call.bytes = std::move(bytes);
    // Decode again: the tensors must point into the bytes that are kept.
    decoded = decode_recorded(call.bytes, path);
    for (const RecordedTensor& tensor : decoded.call.tensors) {
      call.given.tensors[tensor.name] = given_of(tensor, call);
    }
    add_in_place(call.given);
    const std::vector<Row> rows =
        rows_of(*known, {path, decoded.case_file}, {{path, decoded.case_file}});
    for (const auto& [name, value] : decoded.call.row.reals) {
      if (!rows.at(0).reals.contains(name)) call.hidden_reals[name] = value;
    }
    if (!known->row_count.empty()) call.rows = rows.at(0).integer(known->row_count);
  } catch (...) {
    recorded_calls().erase(at);
    throw;
  }
  return {path, decoded.case_file};
}

bool is_recorded(const Row& row) { return !row.word(kRecorded).empty(); }

OpDefinition with_recorded_rows(OpDefinition op) {
  const auto plain = std::make_shared<const OpDefinition>(op);
  op.make_problem = [plain](const Row& row,
                            const device::Properties& platform) -> std::unique_ptr<Problem> {
    if (!is_recorded(row)) return plain->make_problem(row, platform);
    return std::make_unique<RecordedProblem>(*plain, row, platform);
  };
  return op;
}

std::vector<std::int64_t> kept_rows(const OpDefinition& op, const Row& row) {
  const RecordedCallOfFile& call = call_of(op, row);
  if (call.rows == 0) return {};
  const std::int64_t first = row.integer(op.row_count);
  std::vector<std::int64_t> kept(
      static_cast<std::size_t>(std::clamp(first, std::int64_t{0}, call.rows)));
  std::iota(kept.begin(), kept.end(), 0);
  if (first > call.rows) {
    throw BadRow(
        fmt::format("{}: {} = {}: {} are recorded", call.path, op.row_count, first, call.rows));
  }
  if (const std::string_view list = row.word(kKeepRows); !list.empty()) {
    const std::vector<std::int64_t> named = parse_kept_rows(list);
    std::erase_if(kept, [&](std::int64_t one) { return !std::ranges::binary_search(named, one); });
  }
  return kept;
}

RecordedProblem::RecordedProblem(const OpDefinition& op, const Row& row,
                                 const device::Properties& platform) {
  const RecordedCallOfFile& call = call_of(op, row);
  try {
    const Row all = whole_row(op, call, row);
    check_shapes(op, call, all, platform);
    own_ = op.make_problem(all, platform);
    tensors_ = tensors_of(op, *own_, call.given);
    axes_ = axes_of(op, all, platform, *own_, tensors_);
    rows_ = call.rows;
    const std::vector<std::int64_t> kept = kept_rows(op, row);
    if (std::ssize(kept) != call.rows) keep_few(op, all, platform, kept);
    for (const auto& [scenario, inputs] :
         {std::pair{"eager", 100}, {"composition", 100}, {"full_graph", 101}}) {
      const std::string id = fmt::format("{}/{}/{}", op.name, row.name, scenario);
      as_recorded_.push_back(mix(seed_of(id), static_cast<std::uint64_t>(inputs)));
    }
    op_ = op.name;
    path_ = call.path;
    inputs_ = fmt::format("{} {} {} {}", platform.platform, row.integers, row.words, row.reals);
  } catch (const BadRow& error) {
    const std::string what = error.what();
    throw BadRow(what.starts_with(call.path) ? what : fmt::format("{}: {}", call.path, what));
  } catch (const std::logic_error& error) {  // a size that overflows
    throw BadRow(fmt::format("{}: {}", call.path, error.what()));
  }
}

void RecordedProblem::keep_few(const OpDefinition& op, const Row& all,
                               const device::Properties& platform,
                               const std::vector<std::int64_t>& kept) {
  if (kept.empty()) throw BadRow("no recorded row is kept");
  if (axes_.empty()) {
    throw BadRow(fmt::format("{}: rows of its calls cannot be left out", op.name));
  }
  Row few = all;
  few.integers.find(op.row_count)->second = rows_ = std::ssize(kept);
  std::shared_ptr<const Problem> own = op.make_problem(few, platform);
  TensorSet fewer = own->make_tensors(), tensors;
  for (HostTensor& tensor : fewer.all()) {
    const auto axis = axes_.find(tensor.spec().name);
    const HostTensor& recorded = tensors_.at(tensor.spec().name);
    if (axis == axes_.end()) {
      const bool given = tensor.spec().role == Role::input || !tensor.spec().starts_as.empty();
      tensors.add(given ? recorded : tensor);
    } else {
      copy_rows(recorded, tensor, axis->second, kept);
      tensors.add(tensor);
    }
  }
  own_ = std::move(own);
  tensors_ = std::move(tensors);
}

// Throws BadRow unless the reference accepts the recorded values, because kernels run on them: an
// index outside of a tensor would make a kernel access foreign memory. Called by fill(), which runs
// in worker processes only, because the reference itself may crash on hostile values.
void RecordedProblem::check_values() const {
  // The result is kept per input, because a case makes its problem again for each point
  // (combination of conditions under which the case is tried).
  static std::mutex mutex;
  static std::set<std::string, std::less<>> right;
  const std::lock_guard lock(mutex);
  if (right.contains(inputs_)) return;
  const plumb_numerics numerics = some_numerics(op_);
  try {
    own_->expect(recorded_step(), tensors_, to_reference(numerics), numerics);
  } catch (const std::exception& error) {
    throw BadRow(fmt::format("{}: not the inputs of a right call: {}", path_, error.what()));
  }
  right.insert(inputs_);
}

Step RecordedProblem::recorded_step() const {
  return {0, own_->capacity(), Fill::real, DeadRows::foreign};
}

TensorSet RecordedProblem::make_tensors() const {
  TensorSet tensors;
  for (const HostTensor& tensor : tensors_.all()) tensors.add(tensor.spec());
  return tensors;
}

std::vector<std::int64_t> RecordedProblem::order_of(const Step& step) const {
  if (axes_.empty() || rows_ < 2 ||
      std::ranges::find(as_recorded_, step.seed) != as_recorded_.end())
    return {};
  const std::int64_t first =
      1 + static_cast<std::int64_t>(step.seed % static_cast<std::uint64_t>(rows_ - 1));
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows_));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + first, order.end());
  return order;
}

void RecordedProblem::fill(const Step& step, TensorSet& tensors) const {
  check_values();
  const std::vector<std::int64_t> order = order_of(step);
  for (const HostTensor& from : tensors_.all()) {
    if (from.spec().role != Role::input) continue;
    HostTensor& to = tensors.at(from.spec().name);
    to.bytes() = from.bytes();
    const auto axis = axes_.find(from.spec().name);
    if (!order.empty() && axis != axes_.end()) copy_rows(from, to, axis->second, order);
  }
}

std::unique_ptr<OpState> RecordedProblem::make_state(const DeviceTensors& tensors) const {
  return own_->make_state(tensors);
}

plumb_status RecordedProblem::launch(const device::OpEntry& entry, const DeviceTensors& tensors,
                                     OpState* state, device::Stream stream) const {
  return own_->launch(entry, tensors, state, stream);
}

plumb_numerics RecordedProblem::declared(const device::OpEntry& entry, const DeviceTensors& tensors,
                                         OpState* state, device::Stream stream) const {
  return own_->declared(entry, tensors, state, stream);
}

Expectations RecordedProblem::expect(const Step&, const TensorSet& tensors,
                                     const reference::Numerics& numerics,
                                     const plumb_numerics& declared) const {
  return own_->expect(recorded_step(), tensors, numerics, declared);
}

Expectations RecordedProblem::expect_sample(const Step&, const TensorSet& tensors,
                                            const reference::Numerics& numerics,
                                            const plumb_numerics& declared) const {
  return own_->expect_sample(recorded_step(), tensors, numerics, declared);
}

Expectations RecordedProblem::expect_whole(const Step&, const TensorSet& tensors,
                                           const reference::Numerics& numerics,
                                           const plumb_numerics& declared) const {
  return own_->expect_whole(recorded_step(), tensors, numerics, declared);
}

RowMask RecordedProblem::promised_rows(const Step&, const TensorSpec& spec) const {
  return own_->promised_rows(recorded_step(), spec);
}

RowMask RecordedProblem::promised_rows_by_inputs(const Step&, const TensorSet& tensors,
                                                 const TensorSpec& spec) const {
  return own_->promised_rows_by_inputs(recorded_step(), tensors, spec);
}

ColumnRanges RecordedProblem::promised_columns(const TensorSet& tensors,
                                               const TensorSpec& spec) const {
  return own_->promised_columns(tensors, spec);
}

std::optional<HostTensor> RecordedProblem::canonical(const TensorSet& tensors,
                                                     const TensorSpec& spec,
                                                     const plumb_numerics& declared) const {
  return own_->canonical(tensors, spec, declared);
}

}  // namespace plumb::cases
