// SPDX-License-Identifier: Apache-2.0
#include "golden/file_cbor.h"

#include <nlohmann/json.hpp>

namespace plumb::golden {

namespace {

using nlohmann::json;

std::vector<std::uint8_t> raw(const std::vector<std::byte>& bytes) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {begin, begin + bytes.size()};
}

json pack(const TensorGolden& tensor) {
  return {tensor.name,         static_cast<int>(tensor.dtype),
          tensor.format,       tensor.scale_layout,
          tensor.shape,        tensor.strides,
          tensor.digest,       tensor.row_checksums,
          tensor.sampled_rows, json::binary(raw(tensor.values))};
}

TensorGolden unpack_tensor(const json& packed) {
  TensorGolden tensor;
  packed.at(0).get_to(tensor.name);
  const int dtype = packed.at(1).get<int>();
  if (dtype < 0 || dtype > static_cast<int>(cases::Dtype::f32)) throw GoldenError("no such dtype");
  tensor.dtype = static_cast<cases::Dtype>(dtype);
  packed.at(2).get_to(tensor.format);
  packed.at(3).get_to(tensor.scale_layout);
  packed.at(4).get_to(tensor.shape);
  packed.at(5).get_to(tensor.strides);
  packed.at(6).get_to(tensor.digest);
  packed.at(7).get_to(tensor.row_checksums);
  packed.at(8).get_to(tensor.sampled_rows);
  const auto bytes = std::as_bytes(std::span<const std::uint8_t>(packed.at(9).get_binary()));
  tensor.values.assign(bytes.begin(), bytes.end());
  return tensor;
}

json pack(const CaseGolden& golden) {
  json outputs = json::array();
  for (const TensorGolden& tensor : golden.outputs) outputs.push_back(pack(tensor));
  return {{"id", golden.id},
          {"provenance", golden.provenance},
          {"inputs", golden.inputs},
          {"outputs", outputs}};
}

CaseGolden unpack_case(const json& packed) {
  CaseGolden golden;
  packed.at("id").get_to(golden.id);
  packed.at("provenance").get_to(golden.provenance);
  packed.at("inputs").get_to(golden.inputs);
  for (const json& tensor : packed.at("outputs")) golden.outputs.push_back(unpack_tensor(tensor));
  return golden;
}

GoldenFile unpack(const json& packed) {
  GoldenFile file;
  packed.at("platform").get_to(file.platform);
  packed.at("op").get_to(file.op);
  packed.at("simulated").get_to(file.simulated);
  packed.at("history").get_to(file.history);
  for (const json& golden : packed.at("cases")) file.cases.push_back(unpack_case(golden));
  return file;
}

}  // namespace

std::vector<std::uint8_t> to_cbor(const GoldenFile& file) {
  json cases = json::array();
  for (const CaseGolden& golden : file.cases) cases.push_back(pack(golden));
  return json::to_cbor({{"platform", file.platform},
                        {"op", file.op},
                        {"simulated", file.simulated},
                        {"history", file.history},
                        {"cases", cases}});
}

GoldenFile from_cbor(std::span<const std::uint8_t> bytes, const std::string& name) {
  try {
    GoldenFile file = unpack(json::from_cbor(bytes.begin(), bytes.end()));
    validate(file);
    return file;
  } catch (const std::exception& error) {
    throw GoldenError(name + ": " + error.what());
  }
}

}  // namespace plumb::golden
