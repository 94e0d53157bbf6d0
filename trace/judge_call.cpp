// SPDX-License-Identifier: Apache-2.0
#include "trace/judge_call.h"

#include <algorithm>
#include <filesystem>

#include "cases/tensors/fill.h"
#include "trace/known_call.h"
#include "trace/non_finite.h"
#include "trace/profiles/profile.h"

namespace plumb::trace {

namespace {

namespace fs = std::filesystem;

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

// The call judged by this promise: drops all numerics of the call, and its values of the choices
// that the promise sets.
TraceCall promising(const Promise& promise, TraceCall call) {
  for (const auto& [name, word] : promise.words) call.scalars.erase(name);
  call.numerics.clear();
  call.profile = promise;
  return call;
}

bool is_right(const TraceCall& call, const StepBytes& bytes, const cases::RowSampling& sampling) {
  try {
    return KnownCall(call, bytes, sampling).call().judge().passed();
  } catch (...) {
    why_not_judged();
    return false;
  }
}

void judge(const TraceCall& call, const StepBytes& bytes, const cases::RowSampling& sampling,
           CallReport& report) {
  {
    const KnownCall known(call, bytes, sampling);
    take(known.call().judge(), report);
  }
  report.profile = call.profile.source;
  if (!report.failed()) return;
  if (!report.profile.empty()) {
    report.failures.push_back(report.profile + " promises " + call.profile.text());
  }
  const std::string other = right_as(call, [&](const Promise& promise) {
    return is_right(promising(promise, call), bytes, sampling);
  });
  if (!other.empty()) report.failures.push_back("right as the kernel of " + other);
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

StoredBytes StepBytes::of(const TraceTensor& tensor) const {
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
  CallReport report{place_of(step, index)};
  cases::RowSampling of_call = sampling;
  for (const std::int64_t number : {report.rank, report.step, report.index}) {
    of_call.seed = cases::mix(of_call.seed, static_cast<std::uint64_t>(number));
  }
  try {
    judge(call, bytes, of_call, report);
  } catch (...) {
    report.not_judged = why_not_judged();
  }
  if (!report.passed()) report.non_finite = unexplained_non_finite(call, bytes);
  return report;
}

}  // namespace plumb::trace
