// SPDX-License-Identifier: Apache-2.0
#include "tools/run/evidence_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "cases/drivers/point_text.h"
#include "cases/judge/expectation.h"
#include "cases/judge/right_values.h"
#include "reference/formats/bfloat16.h"
#include "tools/report.h"
#include "tools/run/npy_file.h"

namespace plumb::tools {

namespace {

namespace fs = std::filesystem;
using cases::Dtype;
using cases::Expectation;
using cases::HostTensor;
using cases::Role;
using nlohmann::ordered_json;

template <class T>
void write_elements(const std::string& path, std::string_view type,
                    const std::vector<std::int64_t>& shape, const std::vector<T>& elements) {
  write_npy(path, type, shape, std::as_bytes(std::span(elements)));
}

void write_tensor(const std::string& path, const HostTensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.spec().shape;
  switch (tensor.spec().dtype) {
    case Dtype::u8: return write_elements(path, "|u1", shape, cases::packed<std::uint8_t>(tensor));
    case Dtype::i32: return write_elements(path, "<i4", shape, cases::packed<std::int32_t>(tensor));
    case Dtype::i64: return write_elements(path, "<i8", shape, cases::packed<std::int64_t>(tensor));
    case Dtype::f32: return write_elements(path, "<f4", shape, cases::packed<float>(tensor));
    case Dtype::bf16: {
      std::vector<float> numbers;
      for (const std::uint16_t bits : cases::packed<std::uint16_t>(tensor)) {
        numbers.push_back(static_cast<float>(reference::decode_bf16(bits)));
      }
      return write_elements(path, "<f4", shape, numbers);
    }
  }
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input: return "input";
    case Role::output: return "output";
    case Role::scratch: return "scratch";
    case Role::state: return "state";
  }
  return "?";
}

// Expected values, bounds and errors of a tensor of real numbers, by element.
struct RightNumbers {
  std::vector<double> expected, bound, error;
};

RightNumbers right_numbers(const Expectation& one, const reference::Estimate& estimate) {
  const HostTensor& stored = *one.stored;
  const auto size = static_cast<std::size_t>(stored.elements());
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  RightNumbers right{std::vector(size, nothing), std::vector(size, nothing),
                     std::vector(size, nothing)};
  for (std::int64_t row = 0; row < stored.rows(); ++row) {
    if (!cases::is_promised(one.promised, row)) continue;
    const cases::ColumnRange columns = cases::columns_of(one.columns, stored, row);
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const std::int64_t i = row * stored.columns() + column;
      const auto at = static_cast<std::size_t>(i);
      const double centre = estimate.centre(i), got = stored.value(row, column);
      right.expected[at] = centre;
      right.bound[at] = estimate.bound(i);
      if (got == centre || (std::isnan(got) && std::isnan(centre))) {
        right.error[at] = 0;
      } else if (std::isnan(got) || std::isnan(centre)) {
        right.error[at] = std::numeric_limits<double>::infinity();
      } else {
        right.error[at] = std::abs(got - centre) / right.bound[at];
      }
    }
  }
  return right;
}

// Turns " (end to end)" into ".end_to_end".
std::string suffix_of(std::string basis) {
  std::erase_if(basis, [](char c) { return c == '(' || c == ')'; });
  std::ranges::replace(basis, ' ', '_');
  if (!basis.empty()) basis.front() = '.';
  return basis;
}

class EvidenceFiles {
 public:
  EvidenceFiles(fs::path folder, const cases::CaseEvidence& evidence)
      : folder_(std::move(folder)), evidence_(evidence) {}

  void write_tensors() {
    for (const HostTensor& tensor : evidence_.tensors.all()) {
      const cases::TensorSpec& spec = tensor.spec();
      ordered_json& entry = describe(spec.name, tensor, spec.name);
      entry["role"] = name_of(spec.role);
      if (spec.format != "number") entry["format"] = spec.format;
      if (!spec.placement.empty()) entry["pieces_at"] = spec.placement;
      write_tensor(path_of(spec.name), tensor);
    }
  }

  void write_expectations(const cases::Expectations& expectations) {
    for (const Expectation& one : expectations) {
      const std::string name = one.stored->spec().name + suffix_of(one.basis);
      if (const reference::Estimate* const estimate = one.truth->estimate()) {
        write_numbers(name, one, right_numbers(one, *estimate));
      } else {
        write_bits(name, one);
      }
    }
  }

  ordered_json take_descriptions() { return std::move(tensors_); }

 private:
  std::string path_of(const std::string& name) const { return folder_ / (name + ".npy"); }

  ordered_json& describe(const std::string& name, const HostTensor& tensor, const std::string& of) {
    ordered_json& entry = tensors_[name];
    entry["dtype"] = cases::name_of(tensor.spec().dtype);
    entry["shape"] = tensor.spec().shape;
    if (name != of) entry["of"] = of;
    if (const auto& excerpt = tensor.spec().excerpt) {
      entry["dimension"] = excerpt->dimension;
      entry["places"] = excerpt->places;
    }
    return entry;
  }

  void write_numbers(const std::string& name, const Expectation& one, const RightNumbers& right) {
    const std::string& of = one.stored->spec().name;
    // A part of an output, or a sample of its rows, has no file with the stored values yet.
    if (!is_whole(*one.stored)) {
      describe(name, *one.stored, of);
      write_tensor(path_of(name), *one.stored);
    }
    const auto write = [&](const char* what, const std::vector<double>& numbers) {
      write_elements(path_of(name + what), "<f8", one.stored->spec().shape, numbers);
    };
    write(".expected", right.expected);
    write(".bound", right.bound);
    write(".error", right.error);
  }

  bool is_whole(const HostTensor& stored) const {
    const std::string& name = stored.spec().name;
    return evidence_.tensors.contains(name) &&
           evidence_.tensors.at(name).spec().shape == stored.spec().shape;
  }

  // Writes the expected codes, integers or bits. A tensor with several right results gets no file.
  void write_bits(const std::string& name, const Expectation& one) {
    if (!is_whole(*one.stored)) return;
    cases::TensorSet judged;
    judged.add(*one.stored);
    cases::RightValues right(judged);
    one.truth->put(*one.stored, one.promised, one.columns, right);
    if (std::ranges::none_of(right.promised().at(one.stored->spec().name),
                             [](std::byte bits) { return bits != std::byte{0}; })) {
      return;
    }
    write_tensor(path_of(name + ".expected"), right.values().at(one.stored->spec().name));
  }

  fs::path folder_;
  const cases::CaseEvidence& evidence_;
  ordered_json tensors_ = ordered_json::object();
};

ordered_json describe_case(const cases::CaseEvidence& evidence, const cases::CaseResult& result,
                           const std::string& reproduce) {
  const cases::Step& step = evidence.step;
  ordered_json json{{"case", result.id},
                    {"platform", result.platform},
                    {"point", cases::spec_of(evidence.point)},
                    {"reproduce", reproduce},
                    {"live", step.live},
                    {"fill", cases::name_of(step.fill)},
                    {"padding", cases::name_of(step.dead_rows)},
                    {"failures", ordered_json::array()}};
  for (const cases::Failure& failure : result.failures) {
    json["failures"].push_back({{"where", failure.context}, {"lines", failure.lines}});
  }
  return json;
}

void write_all(const fs::path& folder, const cases::Case& which, const cases::RunOptions& options,
               const cases::CaseResult& result, const std::string& reproduce) {
  const cases::CaseEvidence& evidence = *result.evidence;
  EvidenceFiles files(folder, evidence);
  files.write_tensors();
  const auto problem = cases::make_problem(which, options, evidence.point.conditions.checked);
  files.write_expectations(problem->expect(
      evidence.step, evidence.tensors, cases::to_reference(evidence.declared), evidence.declared));
  ordered_json json = describe_case(evidence, result, reproduce);
  json["tensors"] = files.take_descriptions();
  write_file(folder / "case.json",
             json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

std::string evidence_folder(const std::string& folder, const cases::CaseResult& result) {
  std::string name = result.id + "." + result.platform;
  std::ranges::replace(name, '/', '.');
  return fs::path(folder) / name;
}

void write_evidence(const std::string& folder, const cases::Case& which,
                    const cases::RunOptions& options, const cases::CaseResult& result,
                    const std::string& reproduce) {
  const fs::path target = evidence_folder(folder, result);
  const fs::path part = target.string() + fmt::format(".{}.part", getpid());
  try {
    fs::create_directories(part);
    write_all(part, which, options, result, reproduce);
    fs::remove_all(target);
    fs::rename(part, target);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(part, ignored);
    const auto* const trouble = dynamic_cast<const fs::filesystem_error*>(&error);
    throw std::runtime_error(
        trouble == nullptr
            ? error.what()
            : fmt::format("cannot write {}: {}", target.string(), trouble->code().message()));
  }
}

}  // namespace plumb::tools
