// SPDX-License-Identifier: Apache-2.0
#include "trace/judge_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "cases/studies/outside_call.h"
#include "cases/tables/registry.h"
#include "cases/tensors/fill.h"
#include "trace/non_finite.h"

namespace plumb::trace {

namespace {

namespace fs = std::filesystem;

// Of a tensor in the terms of an op. Nothing: no op has such elements.
std::optional<cases::Dtype> dtype_of(const ElementType& type) {
  using cases::Dtype;
  if (type.name == "f32") return Dtype::f32;
  if (type.name == "bf16") return Dtype::bf16;
  if (type.name == "i32" || type.name == "u32") return Dtype::i32;
  if (type.name == "i64" || type.name == "u64") return Dtype::i64;
  if (type.bytes == 1) return Dtype::u8;
  return std::nullopt;
}

// Why a call is not judged.
class NotJudged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The bytes of a call's tensors, laid out as the op's table has them.
class CallTensors {
 public:
  CallTensors(const TraceCall& call, const StepBytes& bytes) : bytes_(bytes) {
    for (const auto& [name, tensor] : call.before) {
      add(call.after.contains(name) ? name + "_before" : name, tensor);
    }
    for (const auto& [name, tensor] : call.after) add(name, tensor);
  }

  const std::map<std::string, cases::GivenTensor, std::less<>>& given() const { return given_; }

 private:
  void add(const std::string& name, const TraceTensor& tensor) {
    const auto dtype = dtype_of(tensor.type);
    if (!dtype) throw NotJudged(fmt::format("{} has elements of {}", name, tensor.type.name));
    if (tensor.data.empty() && tensor.elements() != 0) {
      throw NotJudged(fmt::format("the values of {} were not recorded", name));
    }
    cases::GivenTensor& given = given_[name];
    given.dtype = *dtype;
    given.shape = tensor.shape;
    given.strides.resize(tensor.shape.size());
    std::int64_t stride = tensor.type.bytes;
    for (std::size_t i = tensor.shape.size(); i-- > 0; stride *= tensor.shape[i]) {
      given.strides[i] = stride;
    }
    // Tensors of ops have a dimension at least. An engine's single number may have none.
    if (given.shape.empty()) {
      given.shape = {1};
      given.strides = {tensor.type.bytes};
    }
    held_.push_back(laid_out(name, tensor));
    given.data = held_.back().data();
  }

  // Blocks that were not recorded hold zeros: the call did not touch them.
  std::vector<std::byte> laid_out(const std::string& name, const TraceTensor& tensor) const {
    if (tensor.elements() == 0) return {};
    std::vector<std::byte> stored = bytes_.of(tensor);
    if (!tensor.blocks) return stored;
    constexpr std::int64_t kMost = std::int64_t{1} << 30;  // bytes
    const std::int64_t all = tensor.elements() * tensor.type.bytes;
    if (all > kMost) throw NotJudged(fmt::format("{} has {} bytes, too many", name, all));
    std::vector<std::byte> whole(static_cast<std::size_t>(all));
    const std::int64_t block = all / tensor.shape.front();
    for (std::size_t i = 0; i < tensor.blocks->size(); ++i) {
      std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(i) * block, block,
                  whole.begin() + (*tensor.blocks)[i] * block);
    }
    return whole;
  }

  const StepBytes& bytes_;
  std::map<std::string, cases::GivenTensor, std::less<>> given_;
  std::vector<std::vector<std::byte>> held_;
};

void add_scalars(const TraceCall& call, cases::GivenCall& given) {
  for (const auto& [name, value] : call.scalars) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) given.integers[name] = *integer;
    if (const auto* word = std::get_if<std::string>(&value)) given.words[name] = *word;
    if (const auto* real = std::get_if<double>(&value)) {
      given.reals[name] = static_cast<float>(*real);
    }
  }
}

cases::NumericSettings numerics_of(const TraceCall& call) {
  cases::NumericSettings numerics;
  for (const auto& [name, value] : call.numerics) {
    if (const auto* word = std::get_if<std::string>(&value)) {
      numerics[name] = cases::numeric_word(name, *word);
    } else if (const auto* real = std::get_if<double>(&value)) {
      numerics[name] = *real;
    } else {
      numerics[name] = static_cast<double>(std::get<std::int64_t>(value));
    }
  }
  return numerics;
}

void take(const cases::CallVerdict& verdict, CallReport& report) {
  std::int64_t compared = 0;
  report.rows = verdict.rows;
  report.rows_judged = verdict.rows_judged;
  for (const cases::JudgedOutput& output : verdict.outputs) {
    const cases::TensorReport& one = output.report;
    compared += one.elements_compared;
    report.margin = std::max(report.margin, one.margin);
    report.failures.insert(report.failures.end(), one.failures.begin(), one.failures.end());
    if (!one.pattern.empty()) report.failures.push_back(one.pattern);
  }
  if (!verdict.right_if.empty()) report.failures.push_back(verdict.right_if);
  if (report.failures.empty() && compared == 0) report.not_judged = "no element of it is promised";
}

bool is_known(const std::string& op) {
  return std::ranges::any_of(cases::all_ops(),
                             [&](const cases::OpDefinition& one) { return one.name == op; });
}

void judge(const TraceCall& call, const StepBytes& bytes, const cases::RowSampling& sampling,
           CallReport& report) {
  if (!is_known(call.op)) throw NotJudged("plumb has no such op");
  const CallTensors tensors(call, bytes);
  cases::GivenCall given{.tensors = tensors.given()};
  add_scalars(call, given);
  const cases::OutsideCall judged(call.op, given, numerics_of(call), true);
  take(judged.judge(sampling), report);
}

}  // namespace

StepBytes::StepBytes(const std::string& path) : file_(path) {
  std::vector<std::string> names;
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), trouble)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("constants-") && name.ends_with(".h5")) {
      names.push_back(entry.path().string());
    }
  }
  std::ranges::sort(names);
  for (const std::string& name : names) constants_.push_back(std::make_unique<StepFile>(name));
}

std::vector<std::byte> StepBytes::of(const TraceTensor& tensor) const {
  for (const auto& constants : constants_) {
    if (!file_.contains(tensor.data) && constants->contains(tensor.data)) {
      return constants->read(tensor.data, tensor.stored_bytes());
    }
  }
  return file_.read(tensor.data, tensor.stored_bytes());
}

CallReport judge_call(const TraceStep& step, std::size_t index, const StepBytes& bytes,
                      const cases::RowSampling& sampling) {
  const TraceCall& call = step.calls.at(index);
  CallReport report{.rank = step.rank,
                    .step = step.step,
                    .index = static_cast<std::int64_t>(index),
                    .calls = std::ssize(step.calls),
                    .op = call.op,
                    .name = call.name,
                    .layer = call.layer,
                    .stream = call.stream,
                    .replay = call.replay.value_or(-1)};
  cases::RowSampling of_call = sampling;
  for (const std::int64_t number : {report.rank, report.step, report.index}) {
    of_call.seed = cases::mix(of_call.seed, static_cast<std::uint64_t>(number));
  }
  try {
    judge(call, bytes, of_call, report);
  } catch (const NotJudged& why) {
    report.not_judged = why.what();
  } catch (const cases::BadRow& why) {
    report.not_judged = why.what();
  }
  if (!report.passed()) report.non_finite = unexplained_non_finite(call, bytes);
  return report;
}

}  // namespace plumb::trace
