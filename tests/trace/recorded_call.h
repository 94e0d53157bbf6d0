// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a case as a recorded call: the smoke rows of every op, as an engine would record
// them.
#pragma once

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cases/recorded/recorded_file.h"
#include "cases/tables/given_call.h"
#include "cases/tables/op_table.h"
#include "cases/tables/registry.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "hdf5/digest.h"

namespace plumb::tests {

// A recorded tensor. For a tensor that the case holds in pieces, it has the whole table's shape
// with the pieces as blocks.
inline cases::RecordedTensor recorded_tensor(const cases::HostTensor& tensor,
                                             std::deque<std::vector<std::byte>>& held) {
  const cases::TensorSpec& spec = tensor.spec();
  cases::RecordedTensor recorded{
      .name = spec.name, .dtype = spec.dtype, .shape = spec.shape, .blocks = {}, .bytes = {}};
  if (spec.sparse) {
    recorded.shape.front() = spec.placement.back() + 1;
    recorded.blocks = spec.placement;
  }
  std::vector<std::byte>& bytes = held.emplace_back();
  const std::size_t size = size_of(spec.dtype);
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const std::byte* const at =
        tensor.bytes().data() + static_cast<std::size_t>(tensor.row_offset(row)) * size;
    bytes.insert(bytes.end(), at, at + static_cast<std::size_t>(tensor.columns()) * size);
  }
  recorded.bytes = bytes;
  return recorded;
}

// The tensor as an engine's recorder passes it.
inline cases::GivenTensor given_tensor(const cases::RecordedTensor& tensor) {
  cases::GivenTensor given{.dtype = tensor.dtype,
                           .shape = tensor.shape,
                           .strides = cases::contiguous_strides(tensor.shape),
                           .data = tensor.bytes.data()};
  for (std::int64_t& stride : given.strides) {
    stride *= static_cast<std::int64_t>(size_of(tensor.dtype));
  }
  return given;
}

// Adds the scalars of a launch, because the shapes may not determine them.
inline void add_scalars(const cases::OpDefinition& op, const cases::Row& row,
                        const device::Properties& platform, cases::GivenCall& call) {
  cases::OpParams params(*op.table);
  op.table->set_scalars(row, &platform, params.data());
  for (const cases::OpTable::Field& field : op.table->fields()) {
    const auto* scalar = std::get_if<cases::TableScalar>(&field);
    if (scalar == nullptr || scalar->member.name.ends_with("stride")) continue;
    if (scalar->when && scalar->when->value({.params = params.data(), .row = &row}) == 0) continue;
    const cases::StructMember& member = scalar->member;
    if (member.type == cases::MemberType::f32) {
      call.reals[member.name] = member.real(params.data());
    } else if (std::get_if<cases::Formula>(&scalar->value) != nullptr) {
      call.integers[member.name] = member.integer(params.data());
    }
  }
}

// The inputs of a case, filled with real values for sim-sm90.
struct RecordedInputs {
  explicit RecordedInputs(const cases::Case& which) {
    const device::Properties platform = device::open_device("sim-sm90")->properties();
    const auto problem = which.op->make_problem(which.row, platform);
    tensors = problem->make_tensors();
    problem->fill({7, problem->capacity(), cases::Fill::real, cases::DeadRows::zero}, tensors);
    file.op = which.op->name;
    file.why = "A test.";
    cases::GivenCall call;
    for (const cases::HostTensor& tensor : tensors.all()) {
      const cases::Role role = tensor.spec().role;
      if (role != cases::Role::input && role != cases::Role::output) continue;
      const cases::RecordedTensor recorded = recorded_tensor(tensor, held);
      call.tensors[recorded.name] = given_tensor(recorded);
      (role == cases::Role::input ? file.tensors : outputs).push_back(recorded);
    }
    call.words = which.row.words;
    call.reals = which.row.reals;
    add_scalars(*which.op, which.row, platform, call);
    file.row = row_of(*which.op, call, platform, true);
    said = {.integers = call.integers, .words = call.words, .reals = call.reals};
  }
  RecordedInputs(const RecordedInputs&) = delete;

  nlohmann::ordered_json scalars() const {
    auto all = nlohmann::ordered_json::object();
    for (const auto& [name, value] : said.integers) all[name] = value;
    for (const auto& [name, value] : said.words) all[name] = value;
    for (const auto& [name, value] : said.reals) all[name] = value;
    return all;
  }

  // True if the case holds a tensor in pieces; whole, that tensor would be large.
  bool has_table() const {
    return std::ranges::any_of(tensors.all(), [](const auto& one) { return one.spec().sparse; });
  }

  cases::TensorSet tensors;
  cases::RecordedFile file;
  std::vector<cases::RecordedTensor> outputs;  // with the contents that a case starts with
  cases::GivenCall said;                       // only its scalars are set
  std::deque<std::vector<std::byte>> held;
};

// Recomputes the file's digest after an edit, as an attacker could.
inline std::string with_own_digest(const std::string& edited) {
  const std::size_t begin = edited.find('\n') + 1;
  const std::string body = edited.substr(begin);
  std::string made =
      edited.substr(0, begin - 33) + hdf5::digest_of(std::as_bytes(std::span(body))) + "\n" + body;
  return made;
}

// One or more rows of each op, without trivial ones.
inline std::vector<cases::Case> smoke_cases() {
  std::vector<cases::Case> chosen;
  for (const cases::Case& which : cases::all_cases()) {
    if (which.row.tier != cases::Tier::smoke) continue;
    if (which.scenario->mode != cases::Scenario::Mode::eager) continue;
    if (!which.row.real_only && which.row.trivial.empty()) chosen.push_back(which);
  }
  return chosen;
}

}  // namespace plumb::tests
