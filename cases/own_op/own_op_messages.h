// SPDX-License-Identifier: Apache-2.0
//
// Messages between plumb and the process of a Python file that declares ops: declarations, calls of
// the reference, results.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cases/own_op/own_op.h"

namespace plumb::cases {

// Role name of a worker process that runs a user's Python file of ops.
inline constexpr const char* kOwnOpsRole = "ops";
// Environment variable with the paths of Python files that declare ops, one per line.
inline constexpr const char* kOwnOpsVariable = "PLUMB_OPS";
inline constexpr const char* kOwnDeclarations = "declarations";  // name of the first request

// The ops that a file declares. `refused`: why the file cannot be used; "" if it can.
struct OwnOpsOfFile {
  std::vector<OwnOp> ops;  // without their reference functions
  std::string refused;
};

struct OwnOpRequest {
  std::string op;
  OwnCall call;
};
struct OwnOpAnswer {
  std::vector<OwnResult> results;
  std::string refused;  // error of the reference; "" if there are results
};

// Numbers as one binary string. As single CBOR numbers they would take nine bytes each, and a tree
// node per number while they are read.
template <class T>
nlohmann::json bytes_of(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return nlohmann::json::binary(std::move(bytes));
}
// Converts a binary string back to numbers. Throws nlohmann::json::exception, std::bad_alloc.
template <class T>
std::vector<T> values_of(const nlohmann::json& json) {
  const auto& bytes = json.get_binary();
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Writes the values of a variant (floats or integers). The caller writes the flag that says which.
template <class Variant>
void put_numbers(nlohmann::json& json, const Variant& values) {
  std::visit([&](const auto& all) { json["values"] = bytes_of(all); }, values);
}

inline void to_json(nlohmann::json& json, const OwnInput& input) {
  json = {{"shape", input.shape}, {"floats", input.values.index() == 0}};
  put_numbers(json, input.values);
}
inline void from_json(const nlohmann::json& json, OwnInput& input) {
  json.at("shape").get_to(input.shape);
  if (json.at("floats").get<bool>()) {
    input.values = values_of<double>(json.at("values"));
  } else {
    input.values = values_of<std::int64_t>(json.at("values"));
  }
}

inline nlohmann::json json_of(const OwnResult& result) {
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&result)) {
    return {{"integers", bytes_of(*integers)}};
  }
  const auto& estimate = std::get<reference::Estimate>(result);
  nlohmann::json json{{"rows", estimate.rows},
                      {"columns", estimate.columns},
                      {"output", static_cast<int>(estimate.output)},
                      {"structured", estimate.structured}};
  json["value"] = bytes_of(estimate.value);
  json["sigma"] = bytes_of(estimate.sigma);
  json["worst"] = bytes_of(estimate.worst);
  json["shift"] = bytes_of(estimate.shift);
  json["row_mean_sigma"] = bytes_of(estimate.row_mean_sigma);
  json["row_systematic"] = bytes_of(estimate.row_systematic);
  json["row_concentration"] = bytes_of(estimate.row_concentration);
  json["row_factor"] = bytes_of(estimate.row_factor);
  return json;
}
inline OwnResult own_result_of(const nlohmann::json& json) {
  if (json.contains("integers")) return values_of<std::int64_t>(json.at("integers"));
  reference::Estimate estimate;
  json.at("rows").get_to(estimate.rows);
  json.at("columns").get_to(estimate.columns);
  estimate.output = static_cast<reference::Format>(json.at("output").get<int>());
  json.at("structured").get_to(estimate.structured);
  estimate.value = values_of<double>(json.at("value"));
  estimate.sigma = values_of<double>(json.at("sigma"));
  estimate.worst = values_of<double>(json.at("worst"));
  estimate.shift = values_of<double>(json.at("shift"));
  estimate.row_mean_sigma = values_of<double>(json.at("row_mean_sigma"));
  estimate.row_systematic = values_of<double>(json.at("row_systematic"));
  estimate.row_concentration = values_of<double>(json.at("row_concentration"));
  estimate.row_factor = values_of<double>(json.at("row_factor"));
  return estimate;
}

inline void to_json(nlohmann::json& json, const OwnTensor& tensor) {
  json = {{"name", tensor.name},     {"dtype", static_cast<int>(tensor.dtype)},
          {"output", tensor.output}, {"optional", tensor.optional},
          {"shape", tensor.shape},   {"least", tensor.least},
          {"below", tensor.below},   {"scale", tensor.scale},
          {"says", tensor.says},     {"between", tensor.between}};
}
inline void from_json(const nlohmann::json& json, OwnTensor& tensor) {
  json.at("name").get_to(tensor.name);
  tensor.dtype = static_cast<Dtype>(json.at("dtype").get<int>());
  json.at("output").get_to(tensor.output);
  json.at("optional").get_to(tensor.optional);
  json.at("shape").get_to(tensor.shape);
  json.at("least").get_to(tensor.least);
  json.at("below").get_to(tensor.below);
  json.at("scale").get_to(tensor.scale);
  json.at("between").get_to(tensor.between);
  json.at("says").get_to(tensor.says);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OwnSize, name, values)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OwnReal, name, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OwnRow, name, why, tier, sizes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OwnOp, name, summary, tensors, sizes, reals, live, rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OwnOpsOfFile, ops, refused)

}  // namespace plumb::cases

namespace plumb::reference {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Numerics, product, accumulator, chains, probability,
                                   function_ulp, unit, step)
}  // namespace plumb::reference

namespace plumb::cases {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OwnCall, inputs, sizes, reals, numerics, structured)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OwnOpRequest, op, call)

inline void to_json(nlohmann::json& json, const OwnOpAnswer& answer) {
  json = {{"refused", answer.refused}, {"results", nlohmann::json::array()}};
  for (const OwnResult& result : answer.results) json["results"].push_back(json_of(result));
}
inline void from_json(const nlohmann::json& json, OwnOpAnswer& answer) {
  json.at("refused").get_to(answer.refused);
  for (const nlohmann::json& one : json.at("results")) {
    answer.results.push_back(own_result_of(one));
  }
}

}  // namespace plumb::cases
