// SPDX-License-Identifier: Apache-2.0
//
// What mhc_pre shares with the ops that fuse it: mixing weights in, coefficients and the sublayer's
// input out, and the per-split sums between them. The sums are judged first; the outputs are then
// judged on the sums that the device stored, and once more from the inputs, end to end.
#pragma once

#include <string_view>
#include <vector>

#include "cases/ops/hyper_connection/hyper_connection.h"
#include "reference/hyper_connection/mhc_pre.h"

namespace plumb::cases {

class MhcMixing {
 public:
  // depth: K of the sums. Throws BadRow.
  MhcMixing(const Row& row, std::int64_t depth);
  static std::vector<Parameter> parameters();
  static std::vector<std::string_view> word_parameters() { return {"norms", "logits"}; }

  bool has_eps() const { return rms_eps_ > 0; }
  StreamsFill streams_fill() const { return {norms_, has_eps()}; }
  void add_inputs(TensorSet& tensors) const;
  // Outputs and visible sums, their names prefixed.
  void add_outputs(TensorSet& tensors, std::string_view prefix = "") const;
  void fill(const Step& step, TensorSet& tensors) const;

  // Everything but the streams.
  template <class Params>
  void set(Params& params, const DeviceTensors& tensors, device::Stream stream,
           std::string_view prefix = "") const;
  reference::MhcPre inputs(const TensorSet& tensors, const reference::Streams& streams) const;
  // `partials`: what the sums should be.
  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::MhcPre& inputs,
                                  reference::MhcPrePartials partials,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared,
                                  std::string_view prefix = "") const;
  RowMask promised(const Step& step, std::string_view tensor) const;

  double cost() const;
  double reference_cost() const;
  ReferenceWork reference_work(const TensorSet& tensors) const;

 private:
  void judge_outputs(const Step& step, const TensorSet& tensors, reference::MhcPreOutputs expected,
                     std::string_view prefix, std::string_view basis,
                     std::vector<TensorReport>& reports) const;

  std::int64_t tokens_, hidden_, depth_;
  Norms norms_;
  LogitRange logits_;
  std::int32_t splits_, iterations_;
  bool has_norm_;
  float rms_eps_, hc_eps_, post_mult_;
};

template <class Params>
void MhcMixing::set(Params& params, const DeviceTensors& tensors, device::Stream stream,
                    std::string_view prefix) const {
  const auto output = [&](std::string_view name) {
    return std::string(prefix) + std::string(name);
  };
  params.fn = tensors.get<float>("fn");
  params.scale = tensors.get<float>("scale");
  params.base = tensors.get<float>("base");
  params.norm_weight = tensors.get<std::uint16_t>("norm_weight");
  params.post = tensors.get<float>(output("post"));
  params.comb = tensors.get<float>(output("comb"));
  params.layer_input = tensors.get<std::uint16_t>(output("layer_input"));
  params.partial_mixes = tensors.get<float>(output("partial_mixes"));
  params.partial_square_sums = tensors.get<float>(output("partial_square_sums"));
  params.tokens = tokens_;
  params.hidden = hidden_;
  params.splits = splits_;
  params.sinkhorn_iterations = iterations_;
  params.rms_eps = params.norm_eps = rms_eps_;
  params.pre_eps = params.sinkhorn_eps = hc_eps_;
  params.post_mult = post_mult_;
  params.stream = stream;
}

}  // namespace plumb::cases
