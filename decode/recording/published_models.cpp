// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/published_models.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <variant>

#include "cases/tables/launch_arguments.h"

namespace plumb::cases {

namespace {

using Arguments = std::map<std::string, LaunchArgument, std::less<>>;

struct Convention {
  std::string_view op, argument;  // op "": every op with this argument
  std::variant<double, std::string_view> value;
};

double inverse_root(const Arguments& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return 0;
  const auto* size = std::get_if<std::int64_t>(&found->second.value);
  return size == nullptr ? 0 : 1 / std::sqrt(static_cast<double>(*size));
}

std::int64_t integer_of(const Arguments& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return 0;
  const auto* value = std::get_if<std::int64_t>(&found->second.value);
  return value == nullptr ? 0 : *value;
}

constexpr double kRopeDim = 64;  // the same in all models   [0]

std::vector<Convention> conventions_of(const PublishedModel& model, const Arguments& arguments) {
  constexpr std::string_view kIndexer = "indexer_q_rope_quant";
  const double offset =
      model.index_rope_first ? 0 : static_cast<double>(integer_of(arguments, "dim")) - kRopeDim;
  return {
      {"", "eps", model.eps},
      {"", "rms_eps", model.eps},
      {"", "norm_eps", model.eps},
      {"", "pre_eps", model.hc_eps},
      {"", "sinkhorn_eps", model.hc_eps},
      {"", "hc_eps", model.hc_eps},
      {"", "post_mult", model.post_mult},
      {"", "sinkhorn_iterations", static_cast<double>(model.sinkhorn_iterations)},
      {"", "routed_scaling_factor", model.routed_scaling},
      {"", "renormalize", 1.0},
      {"", "sm_scale", model.sm_scale},
      {kIndexer, "rope_pairs", model.index_rope_pairs},
      {kIndexer, "rope_dim", kRopeDim},
      {kIndexer, "rope_offset", offset},
      {kIndexer, "softmax_scale", inverse_root(arguments, "dim")},
      {kIndexer, "head_scale", inverse_root(arguments, "heads")},
  };
}

// The call's value as text if it differs from the convention. nullopt: it is equal, or the call has
// no such argument.
std::optional<std::string> other_value(const Convention& convention, const Arguments& arguments) {
  const auto found = arguments.find(convention.argument);
  if (found == arguments.end()) return std::nullopt;
  const auto& value = found->second.value;
  const auto* number = std::get_if<double>(&convention.value);
  bool same = false;
  std::string text;
  if (const auto* word = std::get_if<std::string>(&value)) {
    same = number == nullptr && std::get<std::string_view>(convention.value) == *word;
    text = *word;
  } else if (const auto* real = std::get_if<float>(&value)) {
    // Tolerance: the model's value and the call's are each rounded to fp32.
    same = number != nullptr && std::abs(*real - *number) <= std::abs(*number) * 0x1p-22;
    text = fmt::format("{}", *real);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    same = number != nullptr && static_cast<double>(*integer) == *number;
    text = fmt::format("{}", *integer);
  }
  return same ? std::nullopt : std::optional(text);
}

std::string text_of(const std::variant<double, std::string_view>& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr ? fmt::format("{:.8g}", *number)
                           : std::string(std::get<std::string_view>(value));
}

// V3.2's softmax scale: head size before compression is 128 + 64; YaRN's mscale for factor 40,
// squared.
const double kV32Scale = 1 / std::sqrt(192.0) * std::pow(0.1 * std::log(40.0) + 1, 2);

}  // namespace

const std::vector<PublishedModel>& published_models() {
  static const PublishedModel v32{
      .name = "V3.2",
      .source =
          "config.json of deepseek-ai/DeepSeek-V3.2-Exp; transformers, deepseek_v32: the "
          "indexer's RoPE is half-split, that of the attention interleaved",
      .hidden = 7168,
      .heads = 128,
      .q_lora = 1536,
      .index_heads = 64,
      .index_dim = 128,
      .index_topk = 2048,
      .window = 0,
      .experts = 256,
      .experts_per_token = 8,
      .expert_groups = 8,
      .kept_groups = 4,
      .eps = 1e-6,
      .routed_scaling = 2.5,
      .sm_scale = kV32Scale,
      .index_rope_pairs = "halves",
      .index_rope_first = true,
      .sinkhorn_iterations = 0,
      .hc_eps = 0,
      .post_mult = 0};
  static const PublishedModel v4_flash{
      .name = "V4-Flash",
      .source =
          "config.json of deepseek-ai/DeepSeek-V4-Flash; transformers and vLLM 0.33, "
          "deepseek_v4: head_dim^-0.5 without mscale, RoPE interleaved in the last dims",
      .hidden = 4096,
      .heads = 64,
      .q_lora = 1024,
      .index_heads = 64,
      .index_dim = 128,
      .index_topk = 512,
      .window = 128,
      .experts = 256,
      .experts_per_token = 6,
      .expert_groups = 0,
      .kept_groups = 0,
      .eps = 1e-6,
      .routed_scaling = 1.5,
      .sm_scale = 1 / std::sqrt(512.0),
      .index_rope_pairs = "interleaved",
      .index_rope_first = false,
      .sinkhorn_iterations = 20,
      .hc_eps = 1e-6,
      .post_mult = 2};
  PublishedModel v4_pro = v4_flash;
  v4_pro.name = "V4-Pro";
  v4_pro.source = "config.json of deepseek-ai/DeepSeek-V4-Pro; the rest as V4-Flash";
  v4_pro.hidden = 7168;
  v4_pro.heads = 128;
  v4_pro.q_lora = 1536;
  v4_pro.index_topk = 1024;
  v4_pro.experts = 384;
  v4_pro.routed_scaling = 2.5;
  static const std::vector<PublishedModel> all{v32, v4_flash, v4_pro};
  return all;
}

const PublishedModel& published_model(std::string_view name) {
  for (const PublishedModel& model : published_models()) {
    if (model.name == name) return model;
  }
  throw std::out_of_range("no published model " + std::string(name));
}

std::vector<std::string> broken_conventions(const PublishedModel& model, const OpDefinition& op,
                                            const void* params) {
  Arguments arguments;
  const auto no_memory = [](const void*) { return std::size_t{0}; };
  for (LaunchArgument& argument : launch_arguments(op, params, no_memory)) {
    arguments.emplace(argument.name, std::move(argument));
  }
  std::vector<std::string> broken;
  for (const Convention& convention : conventions_of(model, arguments)) {
    if (!convention.op.empty() && convention.op != op.name) continue;
    const std::optional<std::string> other = other_value(convention, arguments);
    if (!other) continue;
    broken.push_back(fmt::format("{} is {}, not {} as in {}", convention.argument, *other,
                                 text_of(convention.value), model.name));
  }
  return broken;
}

}  // namespace plumb::cases
