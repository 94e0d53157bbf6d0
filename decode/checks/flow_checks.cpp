// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/flow_checks.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb::cases {

namespace {

using device::decode::CallPlace;

// Whether the op reads the residual that the layer before has written.
bool joins_layers(std::string_view op) {
  static const std::set<std::string_view> ops{
      "mhc_pre", "mhc_pre_broadcast",  "mhc_fused_post_pre", "mhc_post",
      "hc_head", "fused_add_rms_norm", "mtp_input_rms_norm"};
  return ops.contains(op);
}

bool are_of_one_layer(const CallPlace& reader, const CallPlace& writer) {
  if (reader.layer < 0 || writer.layer < 0) return true;
  return reader.layer == writer.layer && reader.draft == writer.draft;
}

bool are_of_one_chunk(const CallPlace& reader, const CallPlace& writer) {
  return reader.chunk < 0 || writer.chunk < 0 || reader.chunk == writer.chunk;
}

// "layer 1 " of "layer 1 attn_sink", "draft layer 0 " of "draft layer 0 q_norm"; empty for memory
// that all layers share.
std::string_view layer_of(std::string_view label) {
  constexpr std::string_view kLayer = "layer ";
  const std::size_t begin = label.find(kLayer);
  if (begin != 0 && !label.starts_with("draft layer ")) return {};
  return label.substr(0, label.find(' ', begin + kLayer.size()) + 1);
}

// Weights and caches of a layer are not for the calls of another layer, nor for the drafter's.
void check_memory_of_layer(const CallRecorder::CallRecording& call, WatchedStep& step) {
  if (call.place.layer < 0) return;
  const std::string layer =
      fmt::format("{}layer {} ", call.place.draft ? "draft " : "", call.place.layer);
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    const auto* const block = step.twin.engine.memory().block_of(copy.from);
    if (block == nullptr || layer_of(block->label).empty()) continue;
    if (layer_of(block->label) == layer) continue;
    step.findings.add(
        Detector::order, step.calls, call.op, call.place.name,
        fmt::format("{} is {}, which belongs to another layer", copy.tensor, block->label));
    return;
  }
}

// No op of the engine works in place with an output that has another name than its input: threads
// may overwrite what others still have to read.
void check_overlap(const CallRecorder::CallRecording& call, WatchedStep& step) {
  for (const CallRecorder::TensorCopy& out : call.copies) {
    if (out.before) continue;
    for (const CallRecorder::TensorCopy& in : call.copies) {
      if (!in.before || in.tensor.ends_with(kBefore)) continue;
      if (in.from >= out.from + out.bytes || out.from >= in.from + in.bytes) continue;
      step.findings.add(
          Detector::order, step.calls, call.op, call.place.name,
          fmt::format("{} is written over {}, which the call reads", out.tensor, in.tensor));
      return;
    }
  }
}

// Ops that join layers write the streams, or the residual, in turns to buffers of one size. Who
// reads an older one leaves out what has been added since.
void check_newest(const CallRecorder::CallRecording& call, WatchedStep& step) {
  if (!joins_layers(call.op)) return;
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    if (!copy.before || copy.tensor.ends_with(kBefore)) continue;
    const StepWriters::Writer* const writer = step.writers.latest(copy.from);
    if (writer == nullptr || !joins_layers(writer->op)) continue;
    const auto& all = step.writers.all();
    const auto newer = std::find_if(all.rbegin(), all.rend(), [&](const auto& other) {
      return other.position > writer->position && joins_layers(other.op) &&
             other.bytes() == writer->bytes();
    });
    if (newer == all.rend()) continue;
    step.findings.add(Detector::order, step.calls, call.op, call.place.name,
                      fmt::format("{} is the output of {}, but {} has written a newer one",
                                  copy.tensor, writer->call, newer->call));
    return;
  }
}

// The fp8 dialect of a call's cache, or "" if the op has none.
std::string dialect_of(const CallRecorder::CallRecording& call, std::string_view word) {
  // The compressor has no such word: it writes no other dialect.
  if (call.op == "compress_norm_rope_insert") return "e4m3fn";
  const auto found = call.row.words.find(word);
  return found == call.row.words.end() ? "" : found->second;
}

// A cache has one dialect. A call that reads it in another one is right on what it was given.
void check_dialects(const CallRecorder::CallRecording& call, WatchedStep& step) {
  static const std::map<std::string_view, std::string_view> caches{
      {"cache", "dialect"}, {"main_cache", "dialect"}, {"extra_cache", "extra_dialect"}};
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    const auto cache = caches.find(copy.tensor);
    const auto* const block = step.twin.engine.memory().block_of(copy.from);
    if (cache == caches.end() || block == nullptr) continue;
    const std::string dialect = dialect_of(call, cache->second);
    if (dialect.empty()) continue;
    const DialectInUse& before =
        step.dialects.try_emplace(block->address, DialectInUse{dialect, call.place.name})
            .first->second;
    if (before.name == dialect) continue;
    step.findings.add(Detector::order, step.calls, call.op, call.place.name,
                      fmt::format("{} is {} with codes of {}, but {} takes them for {}",
                                  copy.tensor, block->label, dialect, before.call, before.name));
    return;
  }
}

// A call that takes `next_n` rows of each request: with another number of rows it takes tokens of
// one request for another's.
void check_rows_of_requests(const CallRecorder::CallRecording& call, WatchedStep& step) {
  const device::decode::StepPlan& plan = step.twin.engine.plan();
  const auto& integers = call.row.integers;
  const auto requests = integers.find("requests"), next_n = integers.find("next_n");
  if (requests == integers.end() || next_n == integers.end() || plan.num_decodes == 0) return;
  const bool all = requests->second == plan.num_decodes || requests->second == plan.requests;
  if (all && next_n->second == plan.next_n) return;
  step.findings.add(
      Detector::order, step.calls, call.op, call.place.name,
      fmt::format("takes {} rows of each of {} requests, but {} requests decode at most {} tokens",
                  next_n->second, requests->second, plan.num_decodes, plan.next_n));
}

// An input of a call: some of the rows that another call wrote.
struct RowsRead {
  const std::string* tensor = nullptr;
  std::int64_t first = 0;
};

// Whether so many rows may be of requests, whose numbers are not those of tokens.
bool may_be_of_requests(std::int64_t rows, const device::decode::StepPlan& plan) {
  return rows == plan.requests || rows == plan.live_requests || rows == plan.num_prefills;
}

// Compares the first rows of inputs that have as many rows, of as many.
void check_first_rows(const CallRecorder::CallRecording& call, WatchedStep& step) {
  std::map<std::pair<std::int64_t, std::int64_t>, RowsRead> read;
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    if (!copy.before || copy.tensor.ends_with(kBefore)) continue;
    const StepWriters::Writer* const writer = step.writers.latest(copy.from);
    if (writer == nullptr || writer->rows == 0) continue;
    if (may_be_of_requests(writer->rows, step.twin.engine.plan())) continue;
    const std::vector<std::int64_t>& shape = call.tensors.at(copy.tensor).spec().shape;
    if (shape.empty()) continue;
    const RowsRead here{&copy.tensor, writer->row_of(copy.from)};
    const RowsRead& other = read.try_emplace({shape.front(), writer->rows}, here).first->second;
    if (other.first == here.first) continue;
    step.findings.add(
        Detector::order, step.calls, call.op, call.place.name,
        fmt::format("{} begins with row {} of {}, but {} with row {}: these are different tokens",
                    *other.tensor, other.first, writer->rows, *here.tensor, here.first));
    return;
  }
}

}  // namespace

void check_flow(const CallRecorder::CallRecording& call, WatchedStep& step) {
  for (const CallRecorder::TensorCopy& copy : call.copies) {
    if (!copy.before || copy.tensor.ends_with(kBefore)) continue;
    const StepWriters::Writer* const writer = step.writers.latest(copy.from);
    if (writer == nullptr) continue;
    const bool layer = joins_layers(call.op) || are_of_one_layer(call.place, writer->place);
    if (layer && are_of_one_chunk(call.place, writer->place)) continue;
    step.findings.add(Detector::order, step.calls, writer->op, call.place.name,
                      fmt::format("{} of {} is the output of {}, a call of another layer or chunk: "
                                  "a call of {} is missing",
                                  copy.tensor, call.place.name, writer->call, writer->op));
    return;
  }
  check_overlap(call, step);
  check_memory_of_layer(call, step);
  check_first_rows(call, step);
  check_newest(call, step);
  check_rows_of_requests(call, step);
  check_dialects(call, step);
}

}  // namespace plumb::cases
