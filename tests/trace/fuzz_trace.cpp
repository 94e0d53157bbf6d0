// SPDX-License-Identifier: Apache-2.0
#include "tests/trace/fuzz_trace.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/registry.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "hdf5/digest.h"
#include "tests/support/fuzz_input.h"
#include "trace/call_outline.h"
#include "trace/call_pair.h"
#include "trace/chain_check.h"
#include "trace/export/repro.h"
#include "trace/judge_call.h"
#include "trace/ranks/rank_check.h"

namespace plumb::trace {

namespace {

using cases::HostTensor;
using cases::Role;
using Json = nlohmann::ordered_json;
using Bytes = std::vector<std::byte>;
using tests::FuzzInput;

constexpr std::size_t kMostBytes = 1 << 20;  // limit for a tensor of the example

// The calls of a trace, and their tensors' bytes by "call/before/x".
struct Example {
  Json calls = Json::array();
  std::map<std::string, Bytes> bytes;
};

const char* dtype_name(cases::Dtype dtype) {
  switch (dtype) {
    case cases::Dtype::f32: return "f32";
    case cases::Dtype::bf16: return "bf16";
    case cases::Dtype::i32: return "i32";
    case cases::Dtype::i64: return "i64";
    default: return "u8";
  }
}

void add_tensor(const HostTensor& tensor, std::size_t index, Json& call, Example& example) {
  constexpr std::string_view kBefore = "_before";
  std::string name = tensor.spec().name;
  const bool before = name.ends_with(kBefore);
  if (before) name.resize(name.size() - kBefore.size());
  const char* side = before || tensor.spec().role == Role::input ? "before" : "after";
  call[side][name] = {{"dtype", dtype_name(tensor.spec().dtype)}, {"shape", tensor.spec().shape}};
  Bytes& bytes = example.bytes[std::to_string(index) + "/" + side + "/" + name];
  const std::size_t size = size_of(tensor.spec().dtype);
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const std::byte* const at =
        tensor.bytes().data() + static_cast<std::size_t>(tensor.row_offset(row)) * size;
    bytes.insert(bytes.end(), at, at + static_cast<std::size_t>(tensor.columns()) * size);
  }
}

std::size_t size_of_call(const cases::TensorSet& tensors) {
  std::size_t most = 0;
  for (const HostTensor& tensor : tensors.all()) {
    const bool in_pieces = tensor.spec().sparse;  // the case holds a few rows of it only
    most = std::max(most, in_pieces ? 2 * kMostBytes : tensor.bytes().size());
  }
  return most;
}

// A call of each op's smallest row, with outputs of zeros.
Example make_example() {
  Example example;
  const device::Properties sm90 = device::open_device("sim-sm90")->properties();
  for (const cases::Case& which : cases::all_cases()) {
    if (which.scenario->mode != cases::Scenario::Mode::eager || which.row.real_only) continue;
    if (which.row.tier != cases::Tier::smoke) continue;
    const auto problem = which.op->make_problem(which.row, sm90);
    cases::TensorSet tensors = problem->make_tensors();
    if (size_of_call(tensors) > kMostBytes) continue;
    problem->fill({7, problem->capacity(), cases::Fill::real, cases::DeadRows::zero}, tensors);
    const std::size_t index = example.calls.size();
    Json call{{"op", which.op->name}, {"scalars", Json::object()}};
    for (const auto& [name, word] : which.row.words) call["scalars"][name] = word;
    for (const auto& [name, value] : which.row.reals) call["scalars"][name] = value;
    for (const HostTensor& tensor : tensors.all()) {
      const Role role = tensor.spec().role;
      if (role == Role::input || role == Role::output) add_tensor(tensor, index, call, example);
    }
    example.calls.push_back(std::move(call));
  }
  return example;
}

const Example& example() {
  static const Example made = make_example();
  return made;
}

// One call of the example, changed as the fuzzer's input says.
class EditedCall {
 public:
  explicit EditedCall(FuzzInput& input)
      : EditedCall(input.byte() % example().calls.size(), input) {}
  EditedCall(std::size_t index, FuzzInput& input)
      : input_(input), index_(index), call_(example().calls[index]) {}

  void replace(const std::string& side, const std::string& name, Bytes bytes) {
    bytes_[std::to_string(index_) + "/" + side + "/" + name] = std::move(bytes);
  }

  void edit() {
    switch (input_.byte() % 8) {
      case 0: some_tensor([&](Json& tensor, Bytes&) { edit_shape(tensor); }); break;
      case 1: some_tensor([&](Json& tensor, Bytes& bytes) { resize(tensor, bytes); }); break;
      case 2: some_tensor([&](Json& tensor, Bytes&) { edit_tensor(tensor); }); break;
      case 3: call_["scalars"][some_name()] = some_value(); break;
      case 4: call_["numerics"][some_name()] = some_value(); break;
      case 5: call_[some_side()].erase(some_name()); break;
      default: some_tensor([&](Json& tensor, Bytes& bytes) { edit_bytes(tensor, bytes); }); break;
    }
  }

  void write(const std::string& path) {
    StepData data;
    for (const char* side : {"before", "after"}) {
      if (!call_.contains(side) || !call_[side].is_object()) continue;
      for (auto& [name, tensor] : call_[side].items()) {
        const Bytes& bytes = bytes_of(side, name);
        if (!tensor.is_object() || tensor.contains("data")) continue;
        const std::string digest = hdf5::digest_of(bytes);
        if (!bytes.empty()) tensor["data"] = digest;
        data[digest] = bytes;
      }
    }
    const Json step{
        {"format", "plumb trace"}, {"version", 1}, {"rank", 0}, {"step", 0}, {"calls", {call_}}};
    write_step_file(path, step.dump(-1, ' ', false, Json::error_handler_t::replace), data);
  }

 private:
  Bytes& bytes_of(const std::string& side, const std::string& name) {
    const std::string key = std::to_string(index_) + "/" + side + "/" + name;
    const auto found = bytes_.find(key);
    if (found != bytes_.end()) return found->second;
    const auto whole = example().bytes.find(key);
    return bytes_[key] = whole == example().bytes.end() ? Bytes() : whole->second;
  }

  std::string some_side() { return input_.byte() % 3 == 0 ? "after" : "before"; }

  void some_tensor(const auto& edit) {
    const std::string side = some_side();
    Json& tensors = call_[side];
    if (!tensors.is_object() || tensors.empty()) return;
    auto at = tensors.begin();
    std::advance(at, input_.byte() % tensors.size());
    if (at.value().is_object()) edit(at.value(), bytes_of(side, at.key()));
  }

  // A name of an argument of the op, or another name.
  std::string some_name() {
    std::vector<std::string> names{"product", "chains", "sum_step", "nothing", ""};
    for (const cases::OpDefinition& op : cases::all_ops()) {
      if (call_["op"] != std::string(op.name)) continue;
      for (const cases::Parameter& one : op.parameters) names.emplace_back(one.name);
      for (const std::string_view word : op.words()) names.emplace_back(word);
    }
    for (const char* side : {"before", "after"}) {
      if (!call_.contains(side)) continue;
      for (const auto& [name, tensor] : call_[side].items()) names.push_back(name);
    }
    const std::size_t chosen = input_.byte() % (names.size() + 1);
    return chosen == names.size() ? input_.text() : names[chosen];
  }

  Json some_value() {
    switch (input_.byte() % 4) {
      case 0: return input_.text();
      case 1: return static_cast<double>(input_.number()) * 1e-3;
      case 2: return nullptr;
      default: return input_.number();
    }
  }

  void edit_shape(Json& tensor) {
    if (!tensor["shape"].is_array() || tensor["shape"].empty()) return;
    tensor["shape"][input_.byte() % tensor["shape"].size()] = input_.number();
  }

  // Changes the number of rows in the shape, and the bytes to match.
  void resize(Json& tensor, Bytes& bytes) {
    if (!tensor["shape"].is_array() || tensor["shape"].empty() || bytes.empty()) return;
    if (!tensor["shape"][0].is_number_unsigned() || tensor["shape"][0] == 0) return;
    const auto rows = tensor["shape"][0].get<std::size_t>();
    const std::size_t row = bytes.size() / rows, wanted = input_.byte() % 20;
    if (row * wanted > kMostBytes) return;
    const Bytes kept = bytes;
    bytes.resize(row * wanted);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = kept[i % kept.size()];
    tensor["shape"][0] = wanted;
  }

  void edit_tensor(Json& tensor) {
    switch (input_.byte() % 5) {
      case 0:
        tensor["dtype"] = input_.one_of<std::string>(
            {"bool", "i8", "u16", "u32", "u64", "f16", "f64", "e4m3fn", "e8m0", "bf16", "f32"});
        break;
      case 1: tensor["blocks"] = {input_.number(), input_.number()}; break;
      case 2: tensor["data"] = std::string(32, input_.one_of({'0', 'a', 'z'})); break;
      case 3: tensor["shape"] = some_value(); break;
      default: tensor[input_.one_of<std::string>({"strides", "offset", "storage"})] = some_value();
    }
  }

  // Overwrites elements with numbers of the tensor's type: indices out of range, negative lengths,
  // NaN.
  void edit_bytes(const Json& tensor, Bytes& bytes) {
    if (bytes.empty()) return;
    const auto type = tensor.contains("dtype") && tensor["dtype"].is_string()
                          ? element_type(tensor["dtype"].get<std::string>())
                          : std::nullopt;
    const std::size_t size = type ? static_cast<std::size_t>(type->bytes) : 1;
    for (int i = input_.byte() % 8; i >= 0; --i) {
      const std::int64_t number = input_.number();
      const auto place =
          static_cast<std::size_t>(input_.number()) % std::max<std::size_t>(bytes.size() / size, 1);
      if ((place + 1) * size <= bytes.size()) std::memcpy(&bytes[place * size], &number, size);
    }
  }

  FuzzInput& input_;
  std::size_t index_ = 0;
  Json call_;
  std::map<std::string, Bytes> bytes_;
};

// A temporary folder of this process.
class FuzzFolder {
 public:
  FuzzFolder()
      : path_(std::filesystem::temp_directory_path() / ("plumb_fuzz_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~FuzzFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void require_line(const std::string& text) {
  const bool line = std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20; });
  if (text.empty() || !line) std::abort();
}

// Compares the call with itself as that of two ranks: with `swaps`, inputs and outputs of the
// second one change places, so that the ranks' shapes differ.
void compare_as_ranks(TraceStep step, const StepBytes& bytes, const char* collective, bool swaps) {
  TraceCall& call = step.calls.front();
  call.collective = collective;
  for (TraceTensors* side : {&call.before, &call.after}) {
    if (side->empty()) continue;
    side->erase(std::next(side->begin()), side->end());
    call.replicated.push_back(side->begin()->first);
  }
  TraceStep other = step;
  step.rank = 0;
  other.rank = 1;
  if (swaps) std::swap(other.calls.front().before, other.calls.front().after);
  const RankReport report = check_ranks({{step, bytes}, {other, bytes}});
  for (const auto& [why, calls] : report.not_compared) require_line(why);
  for (const RankFinding& one : report.found) require_line(one.first);
}

// Judges the file, which has one call. Aborts if a message is not one printable line.
void judge_file(const std::string& path, const cases::RowSampling& sampling) {
  try {
    const StepBytes bytes(path);
    const TraceStep step = parse_step(bytes.text(), path);
    const CallReport report = judge_call(step, 0, bytes, sampling);
    check_chains(step, bytes);
    outline_of(step, path);
    for (const char* collective : {"", "all_reduce", "reduce_scatter", "all_gather"}) {
      compare_as_ranks(step, bytes, collective, sampling.most % 2 == 1);
    }
    if (sampling.most == 2) repro_of(step, 0, bytes);
    if (sampling.most == 3) compare_pair(step.calls.front(), bytes, step.calls.front(), bytes, {});
    if (!report.not_judged.empty()) require_line(report.not_judged);
    for (const std::string& line : report.failures) require_line(line);
  } catch (const BadTrace& error) {
    require_line(error.what());
  } catch (const std::bad_alloc&) {
  }
  std::filesystem::remove(path);
}

std::string file_of_this_process() {
  static const FuzzFolder folder;
  return folder.path() + "/step-000000.h5";
}

}  // namespace

void fuzz_trace(std::span<const std::uint8_t> edits) {
  FuzzInput input(edits);
  const cases::RowSampling sampling{.most = input.byte() % 4};
  EditedCall call(input);
  constexpr int kMostEdits = 8;
  for (int i = 0; i < kMostEdits && !input.empty(); ++i) call.edit();
  call.write(file_of_this_process());
  judge_file(file_of_this_process(), sampling);
}

int judge_hostile_integers(int first, int every) {
  constexpr std::int64_t kValues[] = {-1, 1000, 1 << 20, std::numeric_limits<std::int32_t>::max(),
                                      std::numeric_limits<std::int32_t>::min()};
  int number = 0, judged = 0;
  for (std::size_t index = 0; index < example().calls.size(); ++index) {
    for (const auto& [name, tensor] : example().calls[index]["before"].items()) {
      if (tensor["dtype"] != "i32" && tensor["dtype"] != "i64") continue;
      const std::size_t size = tensor["dtype"] == "i32" ? 4 : 8;
      const std::string key = std::to_string(index) + "/before/" + name;
      const Bytes& bytes = example().bytes.at(key);
      if (bytes.empty()) continue;
      for (const std::size_t place : {std::size_t{0}, bytes.size() / size - 1}) {
        for (const std::int64_t value : kValues) {
          if (number++ % every != first) continue;
          FuzzInput nothing({});
          EditedCall call(index, nothing);
          Bytes changed = bytes;
          std::memcpy(&changed[place * size], &value, size);
          call.replace("before", name, std::move(changed));
          call.write(file_of_this_process());
          judge_file(file_of_this_process(), {});
          ++judged;
        }
      }
    }
  }
  return judged;
}

}  // namespace plumb::trace

#ifdef PLUMB_FUZZ
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plumb::trace::fuzz_trace({data, size});
  return 0;
}
#endif
