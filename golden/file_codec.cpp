// SPDX-License-Identifier: Apache-2.0
//
// Codec of a golden file for messages between two plumb processes (process/codec.h).
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "golden/model.h"
#include "process/codec_fields.h"

namespace plumb::cases {
PLUMB_ENUM_BY_NAME(Dtype, 5)
}

// All fields of a tensor except its values.
#define PLUMB_TENSOR_FIELDS(To)                                                                   \
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(To, name, dtype, format, scale_layout, shape, strides, \
                                           digest, row_checksums, sampled_rows, sketch))

namespace plumb::golden {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorStatistics, non_finite, mean, norm, least, greatest,
                                   least_at, greatest_at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorSketch, statistics, projections)

// Values are sent as one binary block: as numbers they would take several times the space. (The
// names of the parameters are those that the macros expect.)
static void to_json(nlohmann::json& nlohmann_json_j, const TensorGolden& nlohmann_json_t) {
  PLUMB_TENSOR_FIELDS(NLOHMANN_JSON_TO)
  const auto* begin = reinterpret_cast<const std::uint8_t*>(nlohmann_json_t.values.data());
  nlohmann_json_j["values"] =
      nlohmann::json::binary({begin, begin + nlohmann_json_t.values.size()});
}
static void from_json(const nlohmann::json& nlohmann_json_j, TensorGolden& nlohmann_json_t) {
  PLUMB_TENSOR_FIELDS(NLOHMANN_JSON_FROM)
  const std::span<const std::uint8_t> values = nlohmann_json_j.at("values").get_binary();
  const auto bytes = std::as_bytes(values);
  nlohmann_json_t.values.assign(bytes.begin(), bytes.end());
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseGolden, id, provenance, inputs, outputs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GoldenFile, platform, op, simulated, history, cases)

}  // namespace plumb::golden

PLUMB_MESSAGE(plumb::golden::GoldenFile)
