// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/taps.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string_view>

#include "cases/decode/stand_ins.h"
#include "cases/registry.h"

namespace plumb::cases {

namespace {

constexpr std::string_view kBefore = "_before";

// Weights: nobody writes them, and they are read where they are.
bool is_constant(std::string_view tensor) {
  static const std::set<std::string_view> names{"fn",        "scale",  "base",     "norm_weight",
                                                "weight",    "bias",   "q_weight", "kv_weight",
                                                "attn_sink", "cos_sin"};
  return names.contains(tensor);
}

// One tensor of a call.
struct Copy {
  std::string tensor;
  const std::byte* from = nullptr;
  std::byte* tap = nullptr;  // the copy, packed as it is there
  std::size_t bytes = 0;
  std::int64_t row_bytes = 0;  // there; 0: as in the Problem's tensor
  bool before = false;         // the call, else behind it
};

// What a tensor that an op changes in place held before ("cache_before") is where the tensor is.
const Binding* find_binding(const std::vector<Binding>& bindings, std::string_view name) {
  const auto named = [&](std::string_view wanted) {
    const auto found = std::find_if(bindings.begin(), bindings.end(),
                                    [&](const Binding& b) { return b.tensor == wanted; });
    return found == bindings.end() ? nullptr : &*found;
  };
  if (const Binding* found = named(name)) return found;
  return name.ends_with(kBefore) ? named(name.substr(0, name.size() - kBefore.size())) : nullptr;
}

// A tensor of as many rows as the call has, all of which exist.
TensorSpec with_rows(TensorSpec spec, std::int64_t rows) {
  spec.shape.front() = rows;
  spec.sparse = false;
  spec.placement.clear();
  return spec;
}

std::size_t bytes_there(const HostTensor& tensor, const Binding& binding) {
  if (binding.row_bytes == 0) return tensor.bytes().size();
  return static_cast<std::size_t>(binding.row_bytes) *
         static_cast<std::size_t>(tensor.spec().shape.front());
}

// The call's rows to the Problem's, which are as long or longer.
void unpack(const std::byte* from, const Copy& copy, HostTensor& to) {
  if (copy.row_bytes == 0) {
    std::memcpy(to.bytes().data(), from, copy.bytes);
    return;
  }
  const std::int64_t rows = to.spec().shape.front();
  const std::size_t stride = to.bytes().size() / static_cast<std::size_t>(rows);
  const std::size_t bytes = std::min(stride, static_cast<std::size_t>(copy.row_bytes));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(to.bytes().data() + static_cast<std::size_t>(row) * stride,
                from + row * copy.row_bytes, bytes);
  }
}

}  // namespace

struct Taps::Tap {
  explicit Tap(device::Device& device) : memory(device) {}

  device::decode::Memory memory;
  std::string name, op;
  const plumb_op_entry* entry = nullptr;
  std::unique_ptr<Problem> problem;  // none: what stands beside ops
  TensorSet tensors;
  std::vector<Copy> copies;
  std::unique_ptr<StandIn> stand_in;
};

bool Taps::Verdict::passed() const {
  return std::all_of(reports.begin(), reports.end(),
                     [](const TensorReport& r) { return r.passed(); });
}

Taps::Taps(device::Device& device, const device::decode::Geometry& geometry,
           const plumb_implementation& ops)
    : device_(device), geometry_(geometry), ops_(ops), stream_(device.create_stream()) {}

Taps::~Taps() { device_.destroy_stream(stream_); }

void Taps::begin(std::string_view part, std::int64_t tokens) {
  current_ = &parts_[{std::string(part), tokens}];
  next_ = 0;
}

// The taps of the latest run have served.
void Taps::begin_varying(std::string_view part) {
  current_ = &varying_[std::string(part)];
  retired_.insert(retired_.end(), std::make_move_iterator(current_->begin()),
                  std::make_move_iterator(current_->end()));
  current_->clear();
  next_ = 0;
}

void Taps::before(const device::decode::Call& call, device::Stream stream) {
  if (current_ == nullptr) throw std::logic_error("a call outside of every part of a step");
  if (next_ == current_->size()) current_->push_back(make_tap(call));
  const Tap& tap = *current_->at(next_);
  if (tap.name != call.name) {
    throw std::logic_error(call.name + " is called where " + tap.name + " was called before");
  }
  copy(tap, true, stream);
}

void Taps::after(const device::decode::Call&, device::Stream stream) {
  copy(*current_->at(next_++), false, stream);
}

void Taps::copy(const Tap& tap, bool before, device::Stream stream) {
  for (const Copy& copy : tap.copies) {
    if (copy.tap != nullptr && copy.before == before) {
      device_.copy(copy.tap, copy.from, copy.bytes, stream);
    }
  }
}

std::unique_ptr<Taps::Tap> Taps::make_tap(const device::decode::Call& call) {
  auto tap = std::make_unique<Tap>(device_);
  tap->name = call.name;
  tap->op = call.op;
  const std::optional<CallRecord> record = record_of(call, geometry_);
  std::vector<Binding> bindings;
  if (record) {
    tap->entry = device::find_entry(ops_, call.op);
    tap->problem = find_op(tap->op).make_problem(record->row, device_.properties());
    tap->tensors = tap->problem->make_tensors();
    bindings = record->bindings;
  } else {
    tap->stand_in = make_stand_in(call);
    tap->tensors = tap->stand_in->make_tensors();
    bindings = tap->stand_in->bindings();
  }
  for (const HostTensor& planned : tap->tensors.all()) {
    const std::string name = planned.spec().name;
    const Binding* const bound = find_binding(bindings, name);
    if (bound == nullptr) throw std::logic_error(call.name + ": nobody says where " + name + " is");
    if (bound->rows != 0 && bound->rows != planned.spec().shape.front()) {
      tap->tensors.at(name) = HostTensor(with_rows(planned.spec(), bound->rows));
    }
    const HostTensor& tensor = tap->tensors.at(name);
    Copy copy{.tensor = name,
              .from = static_cast<const std::byte*>(bound->address),
              .bytes = bytes_there(tensor, *bound),
              .row_bytes = bound->row_bytes,
              .before = tensor.spec().role == Role::input};
    if (copy.bytes != 0 && !is_constant(name)) {
      copy.tap = tap->memory.allocate<std::byte>(static_cast<std::int64_t>(copy.bytes),
                                                 "tap of " + call.name + " " + name);
    }
    tap->copies.push_back(std::move(copy));
  }
  return tap;
}

std::vector<Taps::Verdict> Taps::judge(const std::string& part, std::int64_t tokens) {
  return judge(parts_.at({part, tokens}));
}

std::vector<Taps::Verdict> Taps::judge_varying(const std::string& part) {
  retired_.clear();
  return judge(varying_.at(part));
}

std::vector<Taps::Verdict> Taps::judge(const Calls& calls) {
  std::vector<Verdict> verdicts;
  for (const auto& tap : calls) verdicts.push_back(judge(*tap));
  return verdicts;
}

Taps::Verdict Taps::judge(Tap& tap) {
  std::vector<std::byte> bytes;
  for (const Copy& copy : tap.copies) {
    if (copy.bytes == 0) continue;
    bytes.resize(copy.bytes);
    device_.copy(bytes.data(), copy.tap != nullptr ? copy.tap : copy.from, copy.bytes, stream_);
    unpack(bytes.data(), copy, tap.tensors.at(copy.tensor));
  }
  Verdict verdict{tap.name, tap.op, {}};
  if (tap.stand_in) {
    verdict.reports = tap.stand_in->judge(tap.tensors);
    return verdict;
  }
  // Padding too: what the contract says of it follows from the inputs.
  const Step step{0, tap.problem->capacity(), Fill::real, DeadRows::foreign};
  verdict.reports =
      tap.problem->judge(step, tap.tensors, to_reference(tap.entry->numerics), tap.entry->numerics);
  return verdict;
}

}  // namespace plumb::cases
