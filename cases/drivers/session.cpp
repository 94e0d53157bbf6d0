// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/session.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cases/drivers/composition.h"
#include "cases/drivers/stray_writes.h"
#include "cases/drivers/verdict_listener.h"
#include "cases/judge/phase.h"
#include "cases/judge/unwritten.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

// Limits on the outputs that are kept of earlier steps, to recognise stale results in a later step.
constexpr std::size_t kMostRemembered = std::size_t{4} << 20;  // bytes per tensor
constexpr std::size_t kStepsRemembered = 3;

// Digest of everything that a verdict depends on. It includes the step, because the reference
// computes from the values that the step filled.
std::array<std::uint64_t, 2> digest_of(const Step& step, bool padded, const TensorSet& tensors) {
  const std::array<std::int64_t, 4> about = {
      static_cast<std::int64_t>(step.seed), step.live, static_cast<std::int64_t>(step.fill),
      padded ? static_cast<std::int64_t>(step.dead_rows) : -1};
  XXH128_hash_t hash = XXH3_128bits(about.data(), sizeof about);
  for (const HostTensor& tensor : tensors.all()) {
    const XXH128_hash_t own = XXH3_128bits(tensor.bytes().data(), tensor.bytes().size());
    const XXH128_hash_t both[2] = {hash, own};
    hash = XXH3_128bits(both, sizeof both);
  }
  return {hash.high64, hash.low64};
}

void check_starts(const TensorSet& tensors) {
  for (const HostTensor& tensor : tensors.all()) {
    if (tensor.spec().starts_as.empty()) continue;
    const TensorSpec& start = tensors.at(tensor.spec().starts_as).spec();
    if (start.role == Role::input && start.dtype == tensor.spec().dtype &&
        start.shape == tensor.spec().shape && start.strides == tensor.spec().strides &&
        start.placement == tensor.spec().placement) {
      continue;
    }
    throw std::logic_error(
        fmt::format("{} cannot start as {}: only an input of the same layout can be a start",
                    tensor.spec().name, start.name));
  }
}

}  // namespace

Session::Session(const Problem& problem, const Case& which, const Point& point,
                 const RunOptions& options, CaseResult& result)
    : problem_(problem),
      point_(point),
      result_(result),
      device_(options.open(options.platform, point.conditions)),
      redeclare_(options.redeclare),
      on_real_launch_(options.on_real_launch),
      host_(problem.make_tensors()) {
  const device::Implementation& implementation =
      options.implementation(options.platform, point.conditions.checked);
  entry_ = device::find_entry(implementation, which.op->name);
  if (!entry_) throw Unsupported(fmt::format("{} has no {}", implementation.name, which.op->name));
  declared_ = entry_->numerics;
  redeclare_(declared_);
  check_starts(host_);
  stream_ = device_->create_stream();
}

Session::Session(const Session& beside, std::string owner, CaseResult& result,
                 device::Stream stream)
    : Session(beside, beside.problem_, std::move(owner), result, stream) {}

Session::Session(const Session& beside, const Problem& problem, std::string owner,
                 CaseResult& result, device::Stream stream)
    : problem_(problem),
      point_(beside.point_),
      result_(result),
      device_(beside.device_),
      owner_(std::move(owner)),
      entry_(beside.entry_),
      redeclare_(beside.redeclare_),
      declared_(beside.declared_),
      stream_(stream != nullptr ? stream : device_->create_stream()),
      host_(problem.make_tensors()) {}

Session::~Session() = default;

Buffers Session::make_buffers(const Buffers* inputs_of) {
  Buffers buffers;
  for (const HostTensor& tensor : host_.all()) {
    const TensorSpec& spec = tensor.spec();
    const bool others = spec.role == Role::input && inputs_of != nullptr;
    buffers.addresses.set(spec.name,
                          others ? inputs_of->addresses.get<void>(spec.name) : allocate(tensor));
  }
  buffers.state = problem_.make_state(buffers.addresses);
  return buffers;
}

void* Session::allocate(const HostTensor& tensor) {
  const TensorSpec& spec = tensor.spec();
  // At least one byte: an op on zero rows still gets a distinct address.
  const std::size_t bytes = std::max<std::size_t>(device_bytes(tensor), 1);
  const std::string label = owner_.empty() ? spec.name : owner_ + " " + spec.name;
  try {
    return spec.sparse ? device_->allocate_sparse(bytes, label) : device_->allocate(bytes, label);
  } catch (const device::DeviceError& error) {
    const std::size_t there = device_->properties().memory_bytes;  // 0: simulated
    if (error.kind() != device::ErrorKind::out_of_memory || there == 0) throw;
    throw NoMemoryLeft(fmt::format("no memory left for {}: {:.1f} GiB of {:.0f}", label,
                                   in_gib(bytes), in_gib(there)));
  }
}

void Session::set_inputs(const Step& step, const Buffers& buffers) {
  {
    const Stopwatch watch(result_.phases.fill);
    problem_.fill(step, host_);
  }
  upload(buffers);
}

void Session::set_inputs_of(const Session& other, const Buffers& buffers) {
  host_ = other.host_;
  upload(buffers);
}

void Session::upload(const Buffers& buffers) {
  const Stopwatch watch(result_.phases.device);
  for (const HostTensor& tensor : host_.all()) {
    if (tensor.spec().role != Role::input || tensor.bytes().empty()) continue;
    auto* to = buffers.addresses.get<std::byte>(tensor.spec().name);
    for_each_piece(tensor, [&](std::size_t there, std::size_t here, std::size_t bytes) {
      device_->copy(to + there, tensor.bytes().data() + here, bytes, stream_);
    });
  }
}

void Session::poison(const Buffers& buffers, Poison poison) {
  const Stopwatch watch(result_.phases.device);
  poison_ = poison;
  for (const HostTensor& tensor : host_.all()) {
    const Role role = tensor.spec().role;
    if ((role != Role::output && role != Role::scratch) || tensor.bytes().empty()) continue;
    auto* to = buffers.addresses.get<std::byte>(tensor.spec().name);
    const auto* from = buffers.addresses.get<std::byte>(tensor.spec().starts_as);
    for_each_piece(tensor, [&](std::size_t there, std::size_t, std::size_t bytes) {
      if (from) {
        device_->copy(to + there, from + there, bytes, stream_);
      } else {
        device_->fill(to + there, static_cast<std::uint8_t>(poison), bytes, stream_);
      }
    });
  }
}

void Session::launch(Buffers& buffers) {
  const Stopwatch watch(result_.phases.device);
  ++result_.launches;
  declared_ = problem_.declared(*entry_, buffers.addresses, buffers.state.get(), stream_);
  redeclare_(declared_);
  const plumb_status status =
      problem_.launch(*entry_, buffers.addresses, buffers.state.get(), stream_);
  if (status == PLUMB_OK) return;
  const std::string said = device_->take_launch_error();
  const std::string why = said.empty() ? "" : ": " + said;
  if (status == PLUMB_UNSUPPORTED) {
    throw Unsupported("the implementation does not support this call" + why);
  }
  if (status == PLUMB_INVALID_ARGUMENT) {
    throw device::DeviceError(device::ErrorKind::invalid_argument,
                              "the implementation refused a legal call" + why);
  }
  throw device::DeviceError(device::ErrorKind::other, "the launch failed" + why);
}

void Session::read_tensor(const Buffers& buffers, const HostTensor& tensor, std::byte* to) {
  const Stopwatch watch(result_.phases.device);
  if (tensor.bytes().empty()) return;
  const auto* from = buffers.addresses.get<std::byte>(tensor.spec().name);
  for_each_piece(tensor, [&](std::size_t there, std::size_t here, std::size_t bytes) {
    device_->copy(to + here, from + there, bytes, stream_);
  });
  device_->synchronize(stream_);
}

// Addresses in a plug-in's process have a mark in their upper 16 bits here, and none there.
void Session::number_addresses(const Buffers& buffers, HostTensor& stored) const {
  std::int64_t* const begin = stored.data<std::int64_t>();
  for (std::int64_t* address = begin; address != begin + stored.elements(); ++address) {
    for (const HostTensor& tensor : host_.all()) {
      const auto* memory = buffers.addresses.get<std::byte>(tensor.spec().name);
      const auto own = reinterpret_cast<std::uintptr_t>(memory), there = own << 16 >> 16;
      const auto found = static_cast<std::uintptr_t>(*address);
      if (found != own && found != there) continue;
      *address = address_number(host_, tensor.spec().name);
      break;
    }
  }
}

TensorSet Session::read_back(const Buffers& buffers, Poison poison,
                             std::vector<std::string>& lines) {
  TensorSet got = fetch(buffers, poison, lines);
  check_guards(lines);
  return got;
}

std::shared_ptr<const Clues> Session::clues_of(Poison poison) const {
  Clues clues{.poison = static_cast<std::uint8_t>(poison), .earlier = earlier_};
  for (const HostTensor& tensor : host_.all()) {
    const bool counts = tensor.spec().dtype == Dtype::i32 || tensor.spec().dtype == Dtype::i64;
    if (tensor.spec().role == Role::input && counts) clues.offsets.push_back(tensor.alias());
  }
  return std::make_shared<const Clues>(std::move(clues));
}

void Session::remember(const TensorSet& got, std::size_t index) {
  Clues::EarlierStep step{fmt::format("step {}", index), {}};
  for (const HostTensor& tensor : got.all()) {
    if (tensor.spec().role == Role::input || tensor.bytes().size() > kMostRemembered) continue;
    TensorSpec spec = tensor.spec();
    spec.clues = nullptr;
    step.stored.add(tensor.alias(std::move(spec)));
  }
  earlier_.push_back(std::move(step));
  if (earlier_.size() > kStepsRemembered) earlier_.erase(earlier_.begin());
}

TensorSet Session::fetch(const Buffers& buffers, Poison poison, std::vector<std::string>& lines) {
  TensorSet got;
  const std::shared_ptr<const Clues> clues = clues_of(poison);
  for (const HostTensor& tensor : host_.all()) {
    const bool input = tensor.spec().role == Role::input;
    TensorSpec spec = tensor.spec();
    if (!input) spec.clues = clues;
    HostTensor& copy = got.add(input ? tensor.alias() : HostTensor(std::move(spec)));
    if (input && read_.size() < tensor.bytes().size()) read_ = Bytes(tensor.bytes().size());
    read_tensor(buffers, tensor, input ? read_.data() : copy.bytes().data());
    if (!input && tensor.spec().format == kAddressFormat) number_addresses(buffers, copy);
    if (!input) continue;
    const Stopwatch watch(result_.phases.judge);
    check_unchanged(tensor, read_, lines);
    note_damage("input_changed", lines);
  }
  const Stopwatch watch(result_.phases.judge);
  for (const HostTensor& tensor : got.all()) {
    const Role role = tensor.spec().role;
    if (role != Role::output && role != Role::scratch) continue;
    const std::string& start = tensor.spec().starts_as;
    check_gaps(tensor, start.empty() ? nullptr : &host_.at(start), poison, lines);
    note_damage("gap_written", lines);
  }
  return got;
}

void Session::check_guards(std::vector<std::string>& lines) {
  const Stopwatch watch(result_.phases.judge);
  for (const device::GuardDamage& damage : device_->check_guards()) {
    lines.push_back(
        fmt::format("{}: guard zone damaged, {} bytes from byte {} ({:#04x}, was {:#04x})",
                    damage.label, damage.bytes, damage.offset, damage.got, damage.expected));
  }
  note_damage("guard_damaged", lines);
}

void Session::note_damage(std::string_view kind, const std::vector<std::string>& lines) {
  if (damage_.empty() && !lines.empty()) damage_ = kind;
}

std::vector<TensorReport> Session::reports_of(const Step& step, const TensorSet& got) {
  const auto key = [&] {
    const Stopwatch watch(result_.phases.judge);
    return digest_of(step, step.live < problem_.capacity(), got);
  }();
  const auto known = result_.known_verdicts.find(key);
  if (known != result_.known_verdicts.end()) return known->second;
  VerdictSeconds seconds;
  std::vector<TensorReport> reports =
      problem_.judge(step, got, to_reference(declared_), declared_, seconds);
  result_.phases.reference += seconds.reference;
  result_.phases.judge += seconds.judge;
  const auto passed = [](const TensorReport& report) { return report.passed(); };
  if (std::all_of(reports.begin(), reports.end(), passed)) result_.known_verdicts[key] = reports;
  return reports;
}

void Session::judge(const Step& step, const TensorSet& got, std::vector<std::string> damage,
                    const std::string& context) {
  std::vector<TensorReport> reports = reports_of(step, got), failed;
  VerdictListener::tell(problem_, {step, got, declared_}, reports);
  for (TensorReport& report : reports) {
    summarize(report);
    if (report.passed()) continue;
    report.pattern =
        under_streams(report.pattern, point_.conditions.policy == device::Policy::early);
    damage.insert(damage.end(), report.failures.begin(), report.failures.end());
    if (!report.pattern.empty()) damage.push_back(report.pattern);
    failed.push_back(report);
  }
  if (damage.empty()) return;
  keep_evidence(step, got);
  fail(context, std::move(damage), std::move(failed));
}

void Session::show(const Step& step, const TensorSet& got) const {
  const bool whole = step.fill == Fill::real && step.live == problem_.capacity();
  if (on_real_launch_ && whole && result_.points == 1) {
    on_real_launch_(problem_, {step, got, declared_});
  }
}

void Session::keep_evidence(const Step& step, const TensorSet& got) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  std::size_t bytes = 0;
  for (const HostTensor& tensor : got.all()) bytes += tensor.bytes().size();
  if (result_.evidence || bytes > kMostBytes) return;
  result_.evidence =
      std::make_shared<CaseEvidence>(CaseEvidence{point_, poison_, step, got, declared_});
}

void Session::compare_bits(const Step& step, const TensorSet& got, const TensorSet& expected,
                           const std::string& what, const std::string& context) {
  // Results of a nondeterministic op may differ, so each is judged by itself.
  if (!declared_.deterministic) {
    if (!result_.failures.empty()) return;
    judge(step, got, {}, context + "; one more launch");
    judge(step, expected, {}, context + "; one more launch");
    return;
  }
  const Stopwatch watch(result_.phases.judge);
  std::vector<std::string> lines;
  std::vector<TensorReport> failed;
  for (const HostTensor& tensor : got.all()) {
    const TensorSpec& spec = tensor.spec();
    if (spec.role == Role::input) continue;
    // Scratch is compared only if the op declares that it stores partial results there.
    if (spec.role == Role::scratch && !declared_.stores_partials) continue;
    const Bytes& bytes = tensor.bytes();
    if (same_bytes(bytes.data(), expected.at(spec.name).bytes().data(), bytes.size())) continue;
    const std::optional<HostTensor> one = problem_.canonical(got, spec, declared_);
    const std::optional<HostTensor> other = problem_.canonical(expected, spec, declared_);
    const TensorReport report =
        judge_bits(one ? *one : tensor, other ? *other : expected.at(spec.name),
                   problem_.promised_rows_by_inputs(step, got, spec), what,
                   problem_.promised_columns(got, spec));
    if (report.passed()) continue;
    lines.insert(lines.end(), report.failures.begin(), report.failures.end());
    failed.push_back(report);
  }
  if (lines.empty()) return;
  keep_evidence(step, got);
  fail(context, std::move(lines), std::move(failed));
}

void Session::fail(const std::string& context, std::vector<std::string> lines,
                   std::vector<TensorReport> reports) {
  std::string kind = std::exchange(damage_, {});
  if (!reports.empty()) kind.clear();
  result_.failures.push_back({context, std::move(lines), std::move(reports), std::move(kind)});
}

void Session::summarize(const TensorReport& report) {
  auto found = std::find_if(result_.tensors.begin(), result_.tensors.end(),
                            [&](const TensorSummary& t) { return t.tensor == report.tensor; });
  if (found == result_.tensors.end()) {
    result_.tensors.push_back({.tensor = report.tensor, .flip = {}, .sample = {}});
    found = result_.tensors.end() - 1;
  }
  if (report.elements_compared == 0) return;
  ++result_.comparisons;
  found->elements_compared += report.elements_compared;
  found->margin = std::max(found->margin, report.margin);
  found->observability = std::min(found->observability, report.observability);
  const double not_zero = 1 - report.zero_share;
  if (not_zero > 0) {
    found->most_observable = std::max(found->most_observable, report.observability / not_zero);
  }
  found->zero_share = std::min(found->zero_share, report.zero_share);
  found->flips += report.flips;
  found->sample.rows += report.sample.rows;
  found->sample.judged += report.sample.judged;
  found->sample.repeated += report.sample.repeated;
  if (found->flip.empty()) found->flip = report.flip;
}

}  // namespace plumb::cases
