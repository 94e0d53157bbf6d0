// SPDX-License-Identifier: Apache-2.0
#include "trace/export/extract.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "cases/recorded/recorded_file.h"
#include "cases/recorded/recorded_problem.h"
#include "cases/tables/op_table.h"
#include "device/device.h"
#include "trace/known_call.h"
#include "trace/step_worker.h"

namespace plumb::trace {

namespace {

// Name that the op uses for an input of the call.
std::string name_of_input(const TraceCall& call, const std::string& name) {
  return call.after.contains(name) ? name + "_before" : name;
}

std::string why_of(const TraceStep& step, std::size_t index) {
  const CallPlace place = place_of(step, index);
  std::string text =
      fmt::format("Call {}/{}/{} of a trace: {}", place.rank, place.step, place.index, place.name);
  if (place.layer >= 0) text += fmt::format(", layer {}", place.layer);
  for (const char* const what : {"engine", "version"}) {
    const auto found = step.provenance.find(what);
    if (found != step.provenance.end()) text += fmt::format(", {} {}", what, found->second);
  }
  return text + ".";
}

// Writes the fp8 formats (dialects) of the call into the row. Their default depends on the
// platform, but the recorded codes must keep their meaning on every platform.
void say_dialects(const cases::OpDefinition& op, cases::Row& row) {
  const device::Properties platform = device::open_device(cases::kCallPlatform)->properties();
  for (const cases::OpTable::Field& field : op.table->fields()) {
    const auto* const scalar = std::get_if<cases::TableScalar>(&field);
    if (scalar == nullptr) continue;
    const auto* const words = std::get_if<cases::WordChoices>(&scalar->value);
    if (words == nullptr || words->of_platform == nullptr) continue;
    if (!row.word(words->parameter).empty()) continue;
    for (const auto& [word, value] : words->values) {
      if (value == words->of_platform(platform)) row.words[words->parameter] = word;
    }
  }
}

// The call's inputs with their recorded bytes.
std::vector<cases::RecordedTensor> inputs_of(const TraceCall& call, const KnownCall& known,
                                             const StepBytes& bytes,
                                             std::vector<StoredBytes>& held) {
  std::map<std::string, const TraceTensor*> recorded;
  for (const auto& [name, tensor] : call.before) recorded[name_of_input(call, name)] = &tensor;
  std::vector<cases::RecordedTensor> inputs;
  for (const cases::HostTensor& tensor : known.call().tensors().all()) {
    const cases::TensorSpec& spec = tensor.spec();
    const auto found = recorded.find(spec.name);
    if (spec.role != cases::Role::input || found == recorded.end()) continue;
    const cases::GivenTensor& given = known.given().tensors.at(spec.name);
    const TraceTensor& stored = *found->second;
    cases::RecordedTensor& input = inputs.emplace_back();
    input.name = spec.name;
    input.dtype = given.dtype;
    input.shape = given.shape;
    input.blocks = stored.blocks;
    if (stored.elements() == 0) continue;
    held.push_back(bytes.of(stored));
    input.bytes = held.back().bytes;
  }
  return inputs;
}

ExtractAnswer made(const TraceStep& step, std::size_t index, const StepBytes& bytes) {
  const TraceCall& call = step.calls.at(index);
  const KnownCall known(call, bytes);
  std::vector<StoredBytes> held;
  cases::RecordedFile file{.op = call.op,
                           .why = why_of(step, index),
                           .row = known.call().row(),
                           .tensors = inputs_of(call, known, bytes, held)};
  say_dialects(known.call().op(), file.row);
  ExtractAnswer answer;
  answer.file = cases::encode_recorded(file);
  // Makes and fills the row's problem once, so that a row that cannot run is refused now.
  const cases::CaseFile taken = cases::take_recorded(answer.file, call.op);
  const cases::Row row = cases::rows_of(known.call().op(), taken, {taken}).at(0);
  const auto problem =
      known.call().op().make_problem(row, device::open_device(cases::kCallPlatform)->properties());
  cases::TensorSet tensors = problem->make_tensors();
  problem->fill({.live = problem->capacity()}, tensors);
  answer.row = fmt::format("{}/{}", call.op, row.name);
  return answer;
}

}  // namespace

ExtractAnswer extract_call(const TraceStep& step, std::size_t call, const StepBytes& bytes) {
  try {
    return made(step, call, bytes);
  } catch (...) {
    ExtractAnswer answer;
    answer.why_not = why_not_judged();
    return answer;
  }
}

int serve_extract() {
  return serve_steps<ExtractRequest, ExtractAnswer>(
      [](const ExtractRequest& request, ExtractAnswer& answer) {
        const OpenStep open(request.path);
        answer = extract_call(open.step, static_cast<std::size_t>(request.call), open.bytes);
      });
}

}  // namespace plumb::trace
