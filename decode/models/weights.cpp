// SPDX-License-Identifier: Apache-2.0
#include "decode/models/weights.h"

#include <cmath>
#include <string>

namespace plumb::device::decode {

namespace {

// Uploads arrays of random numbers, uniform in [middle - spread, middle + spread).
class Uploader {
 public:
  Uploader(Device& device, Stream stream, EngineMemory& memory, std::uint64_t seed)
      : device_(device), stream_(stream), memory_(memory), state_(seed) {}

  float* floats(std::int64_t count, double middle, double spread, const std::string& label) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = static_cast<float>(middle + spread * next());
    return upload(values, label);
  }
  std::uint16_t* bf16(std::int64_t count, double middle, double spread, const std::string& label) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
    for (std::uint16_t& value : values) value = to_bf16(middle + spread * next());
    return upload(values, label);
  }
  // Every 37th column is scaled by 2^-20, as trained weights have nearly dead columns: these values
  // are below the smallest FP8 code.
  std::uint16_t* bf16_with_dead_columns(std::int64_t count, double middle, double spread,
                                        const std::string& label) {
    constexpr std::int64_t kEvery = 37;
    constexpr double kDead = 0x1p-20;
    std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = middle + spread * next();
      values[static_cast<std::size_t>(i)] = to_bf16(i % kEvery == 5 ? kDead * value : value);
    }
    return upload(values, label);
  }
  template <class T>
  T* upload(const std::vector<T>& values, const std::string& label) {
    T* const to = memory_.allocate<T>(static_cast<std::int64_t>(values.size()), label);
    device_.copy(to, values.data(), values.size() * sizeof(T), stream_);
    return to;
  }

 private:
  // Multiple of 2^-23 in [-1, 1).
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(static_cast<std::int64_t>(state_ >> 40) - (1 << 23)) * 0x1p-23;
  }
  // Truncates: random weights need no rounding.
  static std::uint16_t to_bf16(double value) {
    const auto single = static_cast<float>(value);
    std::uint32_t bits = 0;
    static_assert(sizeof bits == sizeof single);
    __builtin_memcpy(&bits, &single, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16);
  }

  Device& device_;
  Stream stream_;
  EngineMemory& memory_;
  std::uint64_t state_;
};

MixTensors mix_weights(Uploader& upload, const Geometry& g, std::int64_t columns,
                       const std::string& name) {
  const double spread = 3 / std::sqrt(static_cast<double>(columns));
  return {upload.floats(kMixes * columns, 0, spread, name + " fn"),
          upload.floats(3, 0.5, 0.25, name + " scale"),
          upload.floats(kMixes, 0, 0.5, name + " base"),
          upload.bf16(g.hidden, 1, 0.25, name + " norm")};
}

CompressorTensors compressor_weights(Uploader& upload, std::int64_t ratio, std::int64_t width,
                                     std::int64_t columns, const std::string& name) {
  return {upload.floats(ratio * width, 0, 1, name + " ape"),
          upload.bf16(columns, 1, 0.25, name + " norm")};
}

void add_compressors(Uploader& upload, const Geometry& g, Attention kind, const std::string& name,
                     LayerWeights& layer) {
  if (kind == Attention::c128a) {
    layer.compressor = compressor_weights(upload, kC128a, kHeadDim, kHeadDim, name + " compressor");
  }
  if (kind != Attention::c4a) return;
  layer.compressor = compressor_weights(upload, kC4a, 2 * kHeadDim, kHeadDim, name + " compressor");
  layer.index_compressor =
      compressor_weights(upload, kC4a, 2 * g.index_dim, g.index_dim, name + " index compressor");
}

std::vector<float> angles(std::int64_t positions) {
  constexpr std::int64_t kHalf = kRopeDim / 2;
  std::vector<float> table;
  for (std::int64_t p = 0; p < positions; ++p) {
    for (const bool sine : {false, true}) {
      for (std::int64_t i = 0; i < kHalf; ++i) {
        const double angle = static_cast<double>(p) *
                             std::pow(1e4, -static_cast<double>(i) / static_cast<double>(kHalf));
        table.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  return table;
}

}  // namespace

Weights::Weights(const Geometry& g, FirstMix first, Device& device, Stream stream,
                 EngineMemory& memory, std::uint64_t seed, const std::string& prefix) {
  Uploader upload(device, stream, memory, seed);
  for (std::size_t i = 0; i < g.layers.size(); ++i) {
    const std::string name = prefix + "layer " + std::to_string(i);
    const bool broadcast = i == 0 && first == FirstMix::broadcast;
    const std::int64_t columns = broadcast ? g.hidden : kStreams * g.hidden;
    layers.push_back(
        {.attention = mix_weights(upload, g, columns, name + " attention"),
         .ffn = mix_weights(upload, g, kStreams * g.hidden, name + " ffn"),
         .q_norm = upload.bf16(g.q_lora, 1, 0.25, name + " q_norm"),
         .kv_norm = upload.bf16_with_dead_columns(kHeadDim, 1, 0.25, name + " kv_norm"),
         .attn_sink = upload.floats(g.heads, 0, 1, name + " attn_sink"),
         .router_bias = upload.floats(g.experts, 0, 0.125, name + " router bias")});
    add_compressors(upload, g, g.layers[i], name, layers.back());
  }
  cos_sin = upload.upload(angles(g.max_context), prefix + "cos_sin");
  const double spread = 3 / std::sqrt(static_cast<double>(kStreams * g.hidden));
  head_fn = upload.floats(kStreams * kStreams * g.hidden, 0, spread, prefix + "hc_head fn");
  head_scale = upload.floats(1, 0.5, 0.25, prefix + "hc_head scale");
  // Nearly closed gates, so that hc_eps changes the result.
  head_base = upload.floats(kStreams, -11, 0.5, prefix + "hc_head base");
  final_norm = upload.bf16(g.hidden, 1, 0.25, prefix + "final norm");
}

V32Weights::V32Weights(const Geometry& g, Device& device, Stream stream, EngineMemory& memory,
                       std::uint64_t seed) {
  Uploader upload(device, stream, memory, seed);
  for (std::size_t i = 0; i < g.layers.size(); ++i) {
    const std::string name = "layer " + std::to_string(i);
    layers.push_back(
        {.attention_norm = upload.bf16(g.hidden, 1, 0.25, name + " attention norm"),
         .ffn_norm = upload.bf16(g.hidden, 1, 0.25, name + " ffn norm"),
         // Values near 0.25, because keys are random: with V3.2's softmax scale and weights near 1,
         // one of few candidates would have all the weight.
         .q_norm = upload.bf16(g.q_lora, 0.25, 0.0625, name + " q_norm"),
         .kv_norm = upload.bf16_with_dead_columns(kHeadDim, 1, 0.25, name + " kv_norm"),
         .router_bias = upload.floats(g.experts, 0, 0.125, name + " router bias")});
  }
  cos_sin = upload.upload(angles(g.max_context), "cos_sin");
  final_norm = upload.bf16(g.hidden, 1, 0.25, "final norm");
}

MtpWeights::MtpWeights(const Geometry& g, Device& device, Stream stream, EngineMemory& memory,
                       std::uint64_t seed) {
  Uploader upload(device, stream, memory, seed);
  enorm = upload.bf16(g.hidden, 1, 0.25, "draft enorm");
  hnorm = upload.bf16(g.hidden, 1, 0.25, "draft hnorm");
  const auto tokens = static_cast<std::size_t>(g.max_tokens());
  constexpr std::size_t kSize = kStreams * kStreams;
  std::vector<float> matrices(tokens * kSize);
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    matrices[i] = i % kSize % (kStreams + 1) == 0 ? 1.0F : 0.0F;
  }
  ones = upload.upload(std::vector<float>(tokens * kStreams, 1), "draft ones");
  identities = upload.upload(matrices, "draft identities");
}

}  // namespace plumb::device::decode
