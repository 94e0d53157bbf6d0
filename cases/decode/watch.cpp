// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "cases/decode/candidates.h"
#include "cases/decode/compare.h"
#include "cases/decode/paged_buffers.h"
#include "cases/run.h"

namespace plumb::cases {

namespace {

using device::decode::Engine;
using device::decode::GraphKind;
using device::decode::GraphMode;
using device::decode::Memory;
using device::decode::ModelRunner;
using device::decode::Padding;
using device::decode::StepPart;

// One of the engines.
struct Runner {
  Runner(const DecodeSetup& setup, bool captures_first, bool tapped)
      : device(open(setup)),
        ops(setup.implementation ? setup.implementation(setup.platform, false)
                                 : device::builtin_implementation(setup.platform)),
        engine(*device, ops, setup.geometry, setup.mode, setup.policies) {
    if (tapped) {
      taps = std::make_unique<Taps>(*device, engine.geometry(), ops, engine.temporaries());
      engine.observe(taps.get());
    }
    if (captures_first) engine.capture();
    captures = engine.counters().captures;
  }
  static std::unique_ptr<device::Device> open(const DecodeSetup& setup) {
    auto device = device::open_device(setup.platform, setup.conditions);
    return setup.wrap ? setup.wrap(std::move(device)) : std::move(device);
  }

  std::unique_ptr<device::Device> device;
  const plumb_implementation& ops;
  Engine engine;
  std::unique_ptr<Taps> taps;
  std::int64_t captures = 0;
};

// What an engine's memory holds, block by block.
using Snapshot = std::vector<std::vector<std::byte>>;

Snapshot snapshot(Runner& runner) {
  Snapshot all;
  for (const Memory::Block& block : runner.engine.memory().blocks()) {
    all.emplace_back(block.bytes);
    runner.device->copy(all.back().data(), block.address, block.bytes, runner.engine.stream());
  }
  return all;
}

struct Range {
  const std::byte *begin, *end;
};

class Watcher {
 public:
  Watcher(const DecodeSetup& setup, const ScheduleShape& shape)
      : schedule_(make_schedule(shape, setup.geometry)),
        plain_(setup, true, false),
        twin_(setup, true, true),
        eager_(setup, false, true),
        other_(setup, true, true) {}

  WatchResult run() {
    for (const ScheduledStep& step : schedule_) {
      try {
        take(step);
        check();
      } catch (const std::exception& error) {
        find(Detector::error, 0, "", "", error.what());
      }
      ++result_.steps;
      if (!result_.findings.empty()) break;
    }
    return std::move(result_);
  }

 private:
  std::array<Runner*, 4> all() { return {&plain_, &twin_, &eager_, &other_}; }

  void take(const ScheduledStep& step) {
    for (Runner* runner : all()) {
      for (const std::uint64_t id : step.finished) runner->engine.finish(id);
      for (const auto& [id, tokens] : step.admitted) runner->engine.admit(id, tokens);
      if (runner->taps) runner->taps->poison(runner->engine.stream());
    }
    before_ = snapshot(twin_);
    plain_.engine.step(step.batch);
    twin_.engine.step(step.batch);
    eager_.engine.step_eagerly(step.batch);
    // Any key and any block that exists.
    other_.engine.step(step.batch, Padding{0x5eed0123456789, 1});
    for (Runner* runner : all()) runner->device->synchronize();
  }

  void check() {
    positions_ = 0;
    written_.clear();
    makers_.clear();
    check_inputs();
    if (!ran()) return;
    if (twin_.engine.geometry().architecture == device::decode::Architecture::v32) {
      check_paged_buffers();
    }
    for (const StepPart& part : twin_.engine.parts()) check_calls(part);
    check_state();
    check_cache_blocks();
    check_twin();
    check_path();
  }

  // Padding as the contract has it: no slot, no length, no token   [10.4].
  void check_padding() {
    const auto& plan = plain_.engine.plan();
    const auto behind = [](const auto& values, std::int64_t first, std::int64_t wanted) {
      return std::all_of(values.begin() + first, values.end(),
                         [&](auto value) { return std::int64_t{value} == wanted; });
    };
    bool right = behind(plan.seq_lens, plan.live_requests, 0) &&
                 behind(plan.state_lens, plan.live_tokens, 0) &&
                 behind(plan.is_padding, plan.live_tokens, 1) &&
                 behind(plan.query_start_loc, plan.live_requests, plan.live_tokens);
    for (const auto& slots : plan.slot_mapping) {
      right = right && behind(slots, plan.live_tokens, -1);
    }
    if (!right) find(Detector::inputs, 0, "inputs", "inputs", "padding has a slot or a length");
  }

  void check_inputs() {
    check_padding();
    for (const device::decode::Transfer& transfer : plain_.engine.planned_inputs()) {
      std::vector<std::byte> got(transfer.bytes);
      plain_.device->copy(got.data(), transfer.to, got.size(), plain_.engine.stream());
      if (std::memcmp(got.data(), transfer.from, got.size()) == 0) continue;
      find(Detector::inputs, 0, "inputs", "inputs",
           fmt::format("{} on the device is not what the host planned", transfer.name));
    }
  }

  // Taps are poisoned before each step. What comes first is captured in every mode.
  bool ran() {
    const Taps::Calls& calls = twin_.taps->fetch(twin_.engine.target().parts().front());
    for (const auto& call : calls) {
      for (const Taps::Copy& copy : call->copies) {
        const bool whole = copy.tap != nullptr && copy.row_bytes == 0;
        if (whole && !is_poison(call->tensors.at(copy.tensor).bytes())) return true;
      }
    }
    find(Detector::ran, 0, "replay", "replay", "not one call of the step has read or written");
    return false;
  }

  static bool is_poison(const Bytes& bytes) {
    constexpr auto kPoison = static_cast<std::byte>(Poison::nan);
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == kPoison; });
  }

  void check_calls(const StepPart& part) {
    const std::int64_t live = twin_.engine.plan().live_tokens;
    const Taps::Calls& twin = twin_.taps->fetch(part);
    const Taps::Calls& eager = eager_.taps->fetch(part);
    const Taps::Calls& other = other_.taps->fetch(part);
    bool same = true;
    for (std::size_t i = 0; i < twin.size(); ++i, ++positions_) {
      const Taps::Tap& call = *twin[i];
      check_addresses(part.name, call);
      check_candidates(call);
      const bool right = judge(call);
      const auto line = output_difference(call, *eager.at(i));
      if (line && same) {
        blame_difference(call, *eager.at(i), *line, right);
        same = false;
      }
      note_written(call);
      if (const auto padded = live_row_difference(*other.at(i), call, live, part.tokens)) {
        if (padding_is_clean_) find(Detector::padding, positions_, call.op, call.name, *padded);
        padding_is_clean_ = false;
      }
    }
  }

  // The metadata's temporaries are gone by now, and nobody has captured them.
  void check_addresses(const std::string& part, const Taps::Tap& call) {
    if (twin_.engine.kind() == GraphKind::none || part.ends_with("metadata")) return;
    for (const Taps::Copy& copy : call.copies) {
      if (copy.allocation == twin_.engine.temporaries().allocation_of(copy.from)) continue;
      find(Detector::address, positions_, call.op, call.name,
           copy.tensor + " was captured where something else, or nothing, is allocated now");
      return;
    }
  }

  // Whoever made the list that is wrong, if one call did.
  void check_candidates(const Taps::Tap& call) {
    if (call.op != "sparse_mla_decode") return;
    const auto line = wrong_candidates(call, twin_.engine.plan(), twin_.engine.geometry());
    if (!line) return;
    const std::string* writer = stale_list(call);
    if (writer == nullptr) {
      find(Detector::candidates, positions_, call.op, call.name, *line);
      return;
    }
    find(Detector::candidates, 0, *writer, call.name,
         *line + "; no call of this step has written that list");
  }

  // Who wrote a list of candidates in an earlier step, and nobody in this one.
  const std::string* stale_list(const Taps::Tap& call) {
    for (const char* name : {"main_indices", "main_indptr", "extra_indices", "extra_indptr"}) {
      for (const Taps::Copy& copy : call.copies) {
        if (copy.tensor != name || maker_of(copy.from) != makers_.end()) continue;
        if (const std::string* writer = twin_.taps->last_writer(copy.from)) return writer;
      }
    }
    return nullptr;
  }

  bool judge(const Taps::Tap& call) {
    ++result_.calls_judged;
    bool right = true;
    for (const TensorReport& report : call.judge()) {
      if (report.passed()) continue;
      right = false;
      find(Detector::reference, positions_, call.op, call.name,
           report.failures.front() + (report.pattern.empty() ? "" : "; " + report.pattern));
    }
    return right;
  }

  // A call that is right on what it was given was given something else: then who should have made
  // that is to blame.
  void blame_difference(const Taps::Tap& call, const Taps::Tap& eager, const std::string& line,
                        bool right) {
    const Taps::Copy* input = right ? different_input(call, eager) : nullptr;
    const auto maker = input == nullptr ? makers_.end() : maker_of(input->from);
    if (maker == makers_.end()) {
      find(Detector::eager, positions_, call.op, call.name, line);
      return;
    }
    find(Detector::eager, maker->position, maker->call->op, maker->call->name,
         fmt::format("what {} reads as {} is not what this call made in the eager step; its {}",
                     call.name, input->tensor, line));
  }

  struct Maker {
    Range range;
    const Taps::Tap* call;
    std::int64_t position;
  };
  // The latest call that writes there.
  std::vector<Maker>::iterator maker_of(const std::byte* address) {
    const auto found = std::find_if(makers_.rbegin(), makers_.rend(), [&](const Maker& maker) {
      return maker.range.begin <= address && address < maker.range.end;
    });
    return found == makers_.rend() ? makers_.end() : std::prev(found.base());
  }

  void note_written(const Taps::Tap& call) {
    for (const Taps::Copy& copy : call.copies) {
      if (copy.before) continue;
      const Range range{copy.from, copy.from + copy.bytes};
      written_.push_back(range);
      makers_.push_back({range, &call, positions_});
    }
  }

  void check_state() {
    now_ = snapshot(twin_);
    const Snapshot& now = now_;
    const auto& blocks = twin_.engine.memory().blocks();
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (now[b] == before_[b]) continue;
      for (std::size_t i = 0; i < now[b].size(); ++i) {
        const std::byte* at = blocks[b].address + i;
        if (now[b][i] == before_[b][i] || is_written(at)) continue;
        find(Detector::state, positions_, "", "",
             fmt::format("{} changed at byte {}: no call of the step writes there", blocks[b].label,
                         i));
        break;
      }
    }
  }

  // Blocks of the caches that changed belong to requests of this step.
  void check_cache_blocks() {
    for (const auto& cache : twin_.engine.caches()) {
      const auto index = block_index(cache.data);
      if (now_[index] == before_[index]) continue;
      const std::int64_t bytes = cache.block_bytes;
      for (std::int64_t block = 0; block * bytes < std::ssize(now_[index]); ++block) {
        const auto begin = static_cast<std::size_t>(block * bytes);
        const auto end = begin + static_cast<std::size_t>(bytes);
        if (std::equal(now_[index].begin() + begin, now_[index].begin() + end,
                       before_[index].begin() + begin)) {
          continue;
        }
        report_block(cache, block);
      }
    }
  }

  void report_block(const device::decode::CacheView& cache, std::int64_t block) {
    const auto& plan = twin_.engine.plan();
    const auto& slots = plan.slot_mapping[static_cast<std::size_t>(cache.cache)];
    const auto live = slots.begin() + plan.live_tokens;
    const auto here = [&](std::int64_t slot) { return slot >= 0 && slot / cache.page == block; };
    if (std::any_of(slots.begin(), live, here)) return;
    find(Detector::state, positions_, "", "",
         fmt::format("block {} of {} changed, which no live token owns", block, cache.name));
  }

  std::size_t block_index(const void* address) const {
    const auto& blocks = twin_.engine.memory().blocks();
    const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const Memory::Block& block) {
      return block.address == address;
    });
    return static_cast<std::size_t>(found - blocks.begin());
  }

  bool is_written(const std::byte* at) const {
    return std::any_of(written_.begin(), written_.end(),
                       [&](const Range& range) { return range.begin <= at && at < range.end; });
  }

  // First: what the layers make of wrong ones may be beyond judging.
  void check_paged_buffers() {
    for (WrongBuffer& wrong : wrong_paged_buffers(twin_.engine, *twin_.device)) {
      find(Detector::metadata, 0, std::move(wrong.op), std::move(wrong.call),
           std::move(wrong.text));
    }
  }

  void check_twin() {
    check_twin("step's", plain_.engine.out(), twin_.engine.out());
    if (plain_.engine.drafter() == nullptr) return;
    check_twin("drafter's", plain_.engine.drafter_out(), twin_.engine.drafter_out());
  }

  void check_twin(const char* whose, const std::uint16_t* plain_out,
                  const std::uint16_t* twin_out) {
    const auto bytes = static_cast<std::size_t>(plain_.engine.plan().live_tokens *
                                                plain_.engine.geometry().hidden) *
                       sizeof(std::uint16_t);
    std::vector<std::byte> plain(bytes), twin(bytes);
    plain_.device->copy(plain.data(), plain_out, bytes, plain_.engine.stream());
    twin_.device->copy(twin.data(), twin_out, bytes, twin_.engine.stream());
    if (plain == twin) return;
    find(Detector::twin, positions_, "", "",
         fmt::format("the {} result without taps differs from the one with taps", whose));
  }

  void check_path() {
    if (plain_.engine.counters().captures != plain_.captures) {
      find(Detector::path, positions_, "", "", "a step was captured again");
      plain_.captures = plain_.engine.counters().captures;
    }
    check_path(plain_.engine.target(), eager_.engine.target());
    if (plain_.engine.drafter() == nullptr) return;
    check_path(*plain_.engine.drafter(), *eager_.engine.drafter());
  }

  void check_path(const ModelRunner& graphs, const ModelRunner& eager) {
    const device::decode::StepPlan& plan = plain_.engine.plan();
    const GraphKind kind = plain_.engine.kind();
    if (kind == GraphKind::none) return;  // or larger than every captured size
    if (graphs.mode() == GraphMode::none) {
      find(Detector::path, positions_, "", "", "the drafter runs without graphs beside its target");
      return;
    }
    const auto graph = kernels(graphs.graphs(kind).nodes(graphs.key(kind, plan)));
    const auto wanted = kernels(eager.eager_nodes(kind, plan, ModelRunner::Which::captured));
    if (graph == wanted) return;
    const auto [g, w] = std::mismatch(graph.begin(), graph.end(), wanted.begin(), wanted.end());
    find(Detector::path, positions_, "", "",
         fmt::format("the graph launches {} kernels, the eager step {}; first difference: {} "
                     "instead of {}",
                     graph.size(), wanted.size(), g == graph.end() ? "the end" : *g,
                     w == wanted.end() ? "the end" : *w));
  }

  static std::vector<std::string> kernels(const std::vector<device::GraphNode>& nodes) {
    std::vector<std::string> names;
    for (const device::GraphNode& node : nodes) {
      if (node.kind == "kernel") names.push_back(node.name);
    }
    return names;
  }

  void find(Detector detector, std::int64_t position, std::string op, std::string call,
            std::string text) {
    auto& all = result_.findings;
    const auto later = std::find_if(all.begin(), all.end(), [&](const Finding& finding) {
      return finding.position > position;
    });
    all.insert(later, {detector, result_.steps, position, std::move(op), std::move(call),
                       std::move(text)});
  }

  const std::vector<ScheduledStep> schedule_;
  Runner plain_, twin_, eager_, other_;
  Snapshot before_, now_;  // of the twin, around the step
  std::vector<Range> written_;
  std::vector<Maker> makers_;
  std::int64_t positions_ = 0;  // calls of the step so far
  bool padding_is_clean_ = true;
  WatchResult result_;
};

}  // namespace

std::string_view name_of(Detector detector) {
  constexpr std::array<std::string_view, 12> kNames{
      "error",     "inputs", "ran",   "address", "candidates", "metadata",
      "reference", "state",  "eager", "twin",    "padding",    "path"};
  return kNames[static_cast<std::size_t>(detector)];
}

bool WatchResult::found_by(Detector detector) const {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.detector == detector; });
}

WatchResult watch(const DecodeSetup& setup, const ScheduleShape& shape) {
  std::unique_ptr<Watcher> watcher;
  try {
    watcher = std::make_unique<Watcher>(setup, shape);
  } catch (const std::exception& error) {
    WatchResult result;
    result.findings.push_back({Detector::error, 0, 0, "", "", error.what()});
    return result;
  }
  return watcher->run();
}

}  // namespace plumb::cases
