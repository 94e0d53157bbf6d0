// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/call_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "cases/drivers/call_sample.h"
#include "cases/drivers/run.h"
#include "cases/tensors/shapes_only.h"
#include "decode/recording/right_calls.h"
#include "device/find_in.h"

namespace plumb::cases {

namespace {

// Weights. No call writes them, so they are read from their place instead of being copied.
bool is_constant(std::string_view tensor) {
  static const std::set<std::string_view> names{
      "fn",       "scale",     "base",      "norm_weight", "weight",       "bias",        "ape",
      "q_weight", "kv_weight", "attn_sink", "cos_sin",     "enorm_weight", "hnorm_weight"};
  return names.contains(tensor);
}

// What `poison` writes over the first bytes of a copy, or over all of a shorter one. No call leaves
// such bytes: poison itself could be a row of -1.
constexpr std::uint8_t kMark = 0xa5;
constexpr std::size_t kMarkBytes = 256;

bool has_mark(std::span<const std::byte> copy) {
  return std::ranges::all_of(copy.first(std::min(copy.size(), kMarkBytes)),
                             [](std::byte b) { return b == std::byte{kMark}; });
}

std::optional<Expectations> expect_sample(const PlaceholderReference& placeholder,
                                          const TensorSet& tensors, const RowChoice& choice) {
  if (placeholder.rows() <= choice.most) return std::nullopt;
  const std::vector<std::int64_t> rows = choose_rows(choice, placeholder.rows());
  const std::unique_ptr<PlaceholderReference> few = placeholder.with_rows(std::ssize(rows));
  if (few == nullptr) return std::nullopt;
  return few->expect(excerpt_of(few->make_tensors(), placeholder.make_tensors(), tensors,
                                placeholder.rows(), rows));
}

}  // namespace

CallRecorder::CallRecorder(device::Device& device, const device::decode::Geometry& geometry,
                           const device::Implementation& ops,
                           const device::CachingAllocator& temporaries, Kept kept)
    : device_(device),
      geometry_(geometry),
      ops_(ops),
      temporaries_(temporaries),
      kept_(kept),
      stream_(device.create_stream()),
      memory_(device) {}

CallRecorder::~CallRecorder() { device_.destroy_stream(stream_); }

void CallRecorder::begin(const device::decode::StepPart& part) {
  fills_ = part.fills;
  if (part.request != 0 && when_filled_) when_filled_(part);
  if (fills_) return;
  tokens_ = part.tokens;
  latest_[part.name] = part;
  auto& run = part.varies ? varying_[part.name] : parts_[{part.name, part.tokens}];
  if (part.varies && run) retired_.push_back(std::move(run));
  if (!run) run = std::make_unique<PartRecord>();
  run->poisoned = false;
  current_ = run.get();
  for (WrittenScratch& scratch : scratch_) scratch.writer.reset();
  auto& others = run->others;
  others.insert(others.begin(), std::move_iterator(run->calls.begin()),
                std::move_iterator(run->calls.end()));
  run->calls.clear();
}

void CallRecorder::before(const device::decode::Call& call, device::Stream stream) {
  if (fills_) return;
  if (current_ == nullptr) throw std::logic_error("a call outside of every part of a step");
  current_->calls.push_back(recording_of(call));
  overwrite_scratch_of(*current_->calls.back(), stream);
  copy(*current_->calls.back(), true, stream);
}

// A run may leave out a call, as that of a planner whose plan is made.
std::unique_ptr<CallRecorder::CallRecording> CallRecorder::recording_of(
    const device::decode::Call& call) {
  auto& others = current_->others;
  const auto known = std::find_if(others.begin(), others.end(), [&](const auto& other) {
    return other->op == call.op && other->place.name == call.place.name;
  });
  if (known == others.end()) {
    auto recording = make_recording(call);
    rebind(recording->bindings, *recording);
    return recording;
  }
  auto recording = std::move(*known);
  others.erase(known);
  rebind(bindings_of(call, geometry_), *recording);
  return recording;
}

void CallRecorder::after(const device::decode::Call&, device::Stream stream) {
  if (!fills_) copy(*current_->calls.back(), false, stream);
}

void CallRecorder::overwrite_scratch(
    const std::vector<device::decode::EngineMemory::NamedBlock>& blocks, std::uint8_t value) {
  scratch_value_ = value;
  for (const auto& block : blocks) {
    if (block.scratch) scratch_.push_back({block.address, block.bytes, std::nullopt});
  }
}

void CallRecorder::overwrite_scratch_of(const CallRecording& recording, device::Stream stream) {
  if (captures_ && !device_.capturing()) return;
  const device::decode::CallPlace& here = recording.place;
  for (WrittenScratch& scratch : scratch_) {
    const bool writes = std::ranges::any_of(recording.copies, [&](const TensorCopy& copy) {
      return !copy.before && is_in(scratch, copy);
    });
    if (!writes) continue;
    const auto last = std::exchange(scratch.writer, here);
    const bool same =
        last && last->layer == here.layer && last->chunk == here.chunk && last->draft == here.draft;
    if (!same) device_.fill(scratch.address, scratch_value_, scratch.bytes, stream);
  }
}

void CallRecorder::copy(const CallRecording& recording, bool before, device::Stream stream) {
  if (captures_ && !device_.capturing()) return;
  for (const TensorCopy& copy : recording.copies) {
    if (copy.to != nullptr && copy.before == before) {
      device_.copy(copy.to, copy.from, copy.bytes, stream);
    }
  }
}

std::unique_ptr<CallRecorder::CallRecording> CallRecorder::make_recording(
    const device::decode::Call& call) {
  auto recording = std::make_unique<CallRecording>();
  const device::OpEntry* const entry =
      exchanged_ ? exchanged_->entry_of(call, ops_) : device::find_entry(ops_, call.op);
  static_cast<JudgedCall&>(*recording) = judged_call(call, entry, geometry_, device_.properties());
  recording->place = call.place;
  if (recording->problem) recording->entry = entry;
  {
    const ShapesOnly shapes;  // most calls that are captured are never fetched
    recording->tensors = recording->make_tensors();
  }
  for (const HostTensor& tensor : recording->tensors.all()) {
    const Binding& bound = *find_binding(recording->bindings, tensor.spec().name);
    recording->copies.push_back(copy_of(tensor, bound, call.place));
  }
  place_copies(*recording);
  return recording;
}

bool CallRecorder::is_in(const WrittenScratch& scratch, const TensorCopy& copy) {
  return scratch.address <= copy.from && copy.from < scratch.address + scratch.bytes;
}

// In a chunk all rows are of live tokens. Scratch has rows that no call writes.
bool CallRecorder::is_kept(const TensorCopy& copy, const HostTensor& tensor,
                           const device::decode::CallPlace& place) const {
  if (kept_ == Kept::everything) return true;
  if (copy.before && !copy.tensor.ends_with(kBefore)) return false;
  if (token_dimension(tensor, tokens_)) return true;
  const bool written = copy.before || tensor.spec().role == Role::output;
  return place.chunk >= 0 && written &&
         std::ranges::none_of(scratch_,
                              [&](const WrittenScratch& one) { return is_in(one, copy); });
}

CallRecorder::TensorCopy CallRecorder::copy_of(const HostTensor& tensor, const Binding& bound,
                                               const device::decode::CallPlace& place) const {
  const std::string& name = tensor.spec().name;
  TensorCopy copy{.tensor = name,
                  .from = static_cast<const std::byte*>(bound.address),
                  .bytes = bytes_there(tensor, bound),
                  .row_bytes = bound.row_bytes,
                  .before = tensor.spec().role == Role::input,
                  .image = image_of(bound, bytes_there(tensor, bound))};
  if (!is_kept(copy, tensor, place)) copy.bytes = 0;
  return copy;
}

// Places all copies of a call in one block.
void CallRecorder::place_copies(CallRecording& recording) {
  constexpr std::size_t kAlignment = 256;
  std::vector<std::pair<TensorCopy*, std::size_t>> places;  // copies and their offsets in the block
  std::size_t bytes = 0;
  for (TensorCopy& copy : recording.copies) {
    if (copy.bytes == 0 || is_constant(copy.tensor) || copy.image >= 0) continue;
    places.emplace_back(&copy, bytes);
    bytes += (copy.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (places.empty()) return;
  const CopyMemory::CopyBlock block = memory_.take(bytes);
  current_->blocks.push_back(block);
  for (const auto& [copy, begin] : places) copy->to = block.address + begin;
}

// Updates the addresses: an attention state or a temporary may lie at another address now.
void CallRecorder::rebind(const std::vector<Binding>& bindings, CallRecording& recording) {
  for (TensorCopy& copy : recording.copies) {
    copy.from = static_cast<const std::byte*>(find_binding(bindings, copy.tensor)->address);
    copy.allocation = temporaries_.allocation_of(copy.from);
    if (!copy.before) writers_[copy.from] = recording.op;
  }
}

const std::string* CallRecorder::last_writer(const std::byte* address) const {
  const auto found = writers_.find(address);
  return found == writers_.end() ? nullptr : &found->second;
}

void CallRecorder::sample(std::int64_t rows, const std::vector<device::decode::CacheView>& caches) {
  sample_ = rows;
  if (kept_ == Kept::rows) return;
  for (const device::decode::CacheView& cache : caches) {
    const std::int64_t bytes = geometry_.blocks(cache.cache) * cache.block_bytes;
    const TensorSpec spec{cache.name, Dtype::u8, {bytes}};
    images_.push_back(
        {reinterpret_cast<const std::byte*>(cache.data), HostTensor(spec), HostTensor(spec)});
  }
}

std::vector<TensorReport> CallRecorder::judge(const CallRecording& recording,
                                              const device::decode::StepPart& part,
                                              std::int64_t live, std::uint64_t seed) const {
  if (sample_ == 0) return judge_whole(recording);
  const RowChoice choice{sample_, seed, std::min(live, part.tokens), part.tokens};
  const device::Properties properties = device_.properties();
  auto some = recording.placeholder
                  ? expect_sample(*recording.placeholder, recording.tensors, choice)
                  : expect_sample({recording.row, properties, *recording.problem,
                                   recording.declared, recording.tensors},
                                  choice);
  return some ? compare(*some) : recording.judge();
}

std::vector<TensorReport> CallRecorder::judge_whole(const CallRecording& recording) const {
  if (recording.placeholder) return recording.judge();
  const auto digest = RightCalls::digest(recording, recording.tensors, device_.properties());
  if (right_calls().has(digest)) return {};
  std::vector<TensorReport> reports = recording.judge();
  const auto passed = [](const TensorReport& report) { return report.passed(); };
  if (std::ranges::all_of(reports, passed)) right_calls().add(digest);
  return reports;
}

// Index of the image if the tensor is a whole cache that is read as an image, else -1.
int CallRecorder::image_of(const Binding& bound, std::size_t bytes) const {
  for (std::size_t i = 0; i < images_.size(); ++i) {
    if (images_[i].address == bound.address && images_[i].after.bytes().size() == bytes) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

void CallRecorder::poison(device::Stream stream) {
  for (Image& image : images_) {
    device_.copy(image.before.bytes().data(), image.address, image.before.bytes().size(), stream);
    image.read = false;
  }
  for (const auto& [name, run] : parts_) {
    if (std::exchange(run->poisoned, true)) continue;
    for (const auto& call : run->calls) {
      for (const TensorCopy& copy : call->copies) {
        if (copy.to == nullptr) continue;
        device_.fill(copy.to, kMark, std::min(copy.bytes, kMarkBytes), stream);
      }
    }
  }
}

CallRecorder::PartRecord& CallRecorder::run_of(const device::decode::StepPart& part) const {
  const std::string missing = fmt::format("{} of {} tokens never ran", part.name, part.tokens);
  return part.varies ? *device::find_in(varying_, part.name, missing)
                     : *device::find_in(parts_, {part.name, part.tokens}, missing);
}

const CallRecorder::Calls& CallRecorder::enqueued(const device::decode::StepPart& part) const {
  return run_of(part).calls;
}

std::optional<device::decode::StepPart> CallRecorder::latest(const std::string& part) const {
  const auto found = latest_.find(part);
  if (found == latest_.end()) return std::nullopt;
  return found->second;
}

bool CallRecorder::has_copies(const device::decode::StepPart& part) {
  std::array<std::byte, kMarkBytes> first;
  const auto is_made = [&](const TensorCopy& copy) {
    if (copy.to == nullptr) return false;
    const std::span<std::byte> bytes(first.data(), std::min(copy.bytes, kMarkBytes));
    device_.copy(bytes.data(), copy.to, bytes.size(), stream_);
    return !has_mark(bytes);
  };
  return std::ranges::any_of(run_of(part).calls, [&](const auto& call) {
    return std::ranges::any_of(call->copies, is_made);
  });
}

void CallRecorder::read_back(const TensorCopy& copy, CallRecording& recording) {
  if (copy.image >= 0) return read_image(copy, recording);
  HostTensor& tensor = recording.tensors.at(copy.tensor);
  if (tensor.bytes().empty()) tensor = HostTensor(tensor.spec());
  const bool unpacks = copy.row_bytes != 0;
  if (unpacks) row_bytes_.resize(copy.bytes);
  const std::span<std::byte> to(unpacks ? row_bytes_.data() : tensor.bytes().data(), copy.bytes);
  device_.copy(to.data(), copy.to != nullptr ? copy.to : copy.from, copy.bytes, stream_);
  if (copy.to != nullptr && has_mark(to)) {
    std::ranges::fill(to, static_cast<std::byte>(Poison::nan));
  }
  if (unpacks) unpack_rows(row_bytes_.data(), copy.row_bytes, tensor);
}

const CallRecorder::Calls& CallRecorder::fetch(const device::decode::StepPart& part, Read read) {
  PartRecord& run = run_of(part);
  run.poisoned = false;
  if (part.varies) {
    for (const auto& retired : retired_) memory_.give_back(retired->blocks);
    retired_.clear();
  }
  for (const auto& recording : run.calls) {
    for (const TensorCopy& copy : recording->copies) {
      const bool wanted = read == Read::everything || !copy.before;
      if (copy.bytes != 0 && wanted) read_back(copy, *recording);
    }
  }
  return run.calls;
}

std::optional<std::size_t> token_dimension(const HostTensor& tensor, std::int64_t tokens) {
  const TensorSpec& spec = tensor.spec();
  if (spec.shape.empty() || spec.role == Role::state) return std::nullopt;
  const auto last = std::prev(spec.shape.end());
  const auto first = spec.shape.begin() + (spec.role == Role::scratch && spec.shape.size() > 1);
  const auto found = std::find(first, last, tokens);
  if (found == last) return std::nullopt;
  return static_cast<std::size_t>(found - spec.shape.begin());
}

// A cache that a call reads is taken as the step left it: within a step all writers of a cache run
// before its readers.
void CallRecorder::read_image(const TensorCopy& copy, CallRecording& recording) {
  Image& image = images_[static_cast<std::size_t>(copy.image)];
  if (!image.read) {
    device_.copy(image.after.bytes().data(), image.address, copy.bytes, stream_);
    image.read = true;
  }
  HostTensor& tensor = recording.tensors.at(copy.tensor);
  tensor = (copy.tensor.ends_with(kBefore) ? image.before : image.after).alias(tensor.spec());
}

}  // namespace plumb::cases
