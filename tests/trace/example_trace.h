// SPDX-License-Identifier: Apache-2.0
//
// A small trace: calls of rms_norm, one of which can be made wrong, and a call of an op that plumb
// does not have.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hdf5/digest.h"
#include "reference/formats/bfloat16.h"
#include "trace/step_file.h"

namespace plumb::tests {

// The JSON text and the tensor data of one step file.
class ExampleStep {
 public:
  using Json = nlohmann::ordered_json;

  explicit ExampleStep(std::int64_t step = 0, std::int64_t rank = 0) {
    json = {{"format", "plumb trace"},
            {"version", 1},
            {"rank", rank},
            {"step", step},
            {"provenance", {{"engine", "example"}}},
            {"calls", Json::array()}};
  }

  // Stores the values and returns the JSON that describes a dense tensor of them.
  template <class T>
  Json tensor(const std::string& dtype, std::vector<std::int64_t> shape,
              const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const std::string digest = hdf5::digest_of(bytes);
    held_[digest].assign(bytes.begin(), bytes.end());
    return {{"dtype", dtype}, {"shape", shape}, {"data", digest}};
  }

  // A call of rms_norm on 3 rows of 64, rounded once. The result is computed with `eps` (1e-6 is
  // right), and row `wrong_row` is multiplied by 2.
  Json& norm(double eps = 1e-6, std::int64_t layer = 0, int wrong_row = -1) {
    std::vector<std::uint16_t> x, weight, out;
    for (int i = 0; i < kColumns; ++i) {
      weight.push_back(reference::encode_bf16(static_cast<float>(1 + 0.4 * std::cos(i))));
    }
    for (int i = 0; i < kRows * kColumns; ++i) {
      x.push_back(reference::encode_bf16(static_cast<float>(std::sin(i * i + 1.0) * 2)));
    }
    for (int row = 0; row < kRows; ++row) {
      double sum = 0;
      for (int i = 0; i < kColumns; ++i) sum += square(x[row * kColumns + i]);
      for (int i = 0; i < kColumns; ++i) {
        const double value = number(x[row * kColumns + i]) / std::sqrt(sum / kColumns + eps) *
                             number(weight[i]) * (row == wrong_row ? 2 : 1);
        out.push_back(reference::encode_bf16(static_cast<float>(value)));
      }
    }
    json["calls"].push_back({{"op", "rms_norm"},
                             {"name", "Norm.forward"},
                             {"layer", layer},
                             {"scalars", {{"eps", 1e-6}}},
                             {"before",
                              {{"x", tensor("bf16", {kRows, kColumns}, x)},
                               {"weight", tensor("bf16", {kColumns}, weight)}}},
                             {"after", {{"out", tensor("bf16", {kRows, kColumns}, out)}}}});
    return json["calls"].back();
  }

  // A call of an op that plumb cannot judge, which read `in` and wrote `out`.
  Json& unknown(const std::vector<float>& in, const std::vector<float>& out) {
    const auto size = [](const auto& values) { return std::vector{std::ssize(values)}; };
    json["calls"].push_back({{"name", "aten::softmax"},
                             {"before", {{"in", tensor("f32", size(in), in)}}},
                             {"after", {{"out", tensor("f32", size(out), out)}}}});
    return json["calls"].back();
  }

  void write(const std::string& path) const { write(path, json.dump()); }
  void write(const std::string& path, const std::string& text) const {
    trace::StepData data;
    for (const auto& [digest, bytes] : held_) data[digest] = bytes;
    trace::write_step_file(path, text, data);
  }

  Json json;

 private:
  static constexpr int kRows = 3, kColumns = 64;
  static double number(std::uint16_t bits) { return reference::decode_bf16(bits); }
  static double square(std::uint16_t bits) { return number(bits) * number(bits); }

  std::map<std::string, std::vector<std::byte>> held_;
};

}  // namespace plumb::tests
