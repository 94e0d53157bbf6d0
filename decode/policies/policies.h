// SPDX-License-Identifier: Apache-2.0
//
// Choices of the host in a decode step, each of which can go wrong without an error message. The
// defaults are right; a fault is a policy that overrides one of them.
#pragma once

#include <cstdint>
#include <memory>

#include "decode/engine/calls.h"
#include "decode/policies/compressor_policies.h"
#include "decode/policies/index_policy.h"
#include "decode/policies/inputs_policy.h"
#include "decode/policies/layer_policies.h"
#include "decode/policies/request_policy.h"
#include "decode/policies/step_policies.h"
#include "decode/policies/top_k_policy.h"
#include "decode/policies/v32_policies.h"

namespace plumb::device::decode {

// Ragged lists and the buffers that a captured graph reads   [2.4, vLLM #42604].
class MetadataPolicy {
 public:
  virtual ~MetadataPolicy() = default;
  // Whether attention gets the persistent buffers. False: it gets temporaries of this step, and a
  // graph keeps the addresses of the captured step's.
  virtual bool hands_out_persistent() const { return true; }
  // Whether indices and indptr are copied to the persistent buffers. False: these keep an earlier
  // step's. `copies`: number of copies made before.
  virtual bool copies_indices(std::int64_t /*copies*/) const { return true; }
  virtual bool copies_indptr(std::int64_t /*copies*/) const { return true; }
};

struct Policies {
  std::shared_ptr<const CapturePolicy> capture = std::make_shared<CapturePolicy>();
  std::shared_ptr<const MetadataPolicy> metadata = std::make_shared<MetadataPolicy>();
  std::shared_ptr<const InputsPolicy> inputs = std::make_shared<InputsPolicy>();
  std::shared_ptr<const RequestPolicy> requests = std::make_shared<RequestPolicy>();
  std::shared_ptr<const TransferPolicy> transfers = std::make_shared<TransferPolicy>();
  std::shared_ptr<const ModePolicy> mode = std::make_shared<ModePolicy>();
  std::shared_ptr<const BreakPolicy> breaks = std::make_shared<BreakPolicy>();
  std::shared_ptr<const ShapePolicy> shapes = std::make_shared<ShapePolicy>();
  std::shared_ptr<const TopKPolicy> top_k = std::make_shared<TopKPolicy>();
  std::shared_ptr<const IndexPolicy> index = std::make_shared<IndexPolicy>();
  std::shared_ptr<const CompressorPolicy> compressor = std::make_shared<CompressorPolicy>();
  std::shared_ptr<const LayerPolicy> layers = std::make_shared<LayerPolicy>();
  std::shared_ptr<const ScratchPolicy> scratch = std::make_shared<ScratchPolicy>();
  std::shared_ptr<const MissingOpPolicy> missing_ops = std::make_shared<MissingOpPolicy>();
  V32Policies v32;
};

}  // namespace plumb::device::decode
