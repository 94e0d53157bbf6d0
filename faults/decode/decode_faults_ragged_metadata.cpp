// SPDX-License-Identifier: Apache-2.0
//
// vLLM #42604: FULL_AND_PIECEWISE graphs of V4 on ROCm. Faults of ragged metadata that graphs read,
// of what the host sends and waits for, and of two caches in two FP8 dialects.
#include "faults/decode/changed_calls.h"
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/graph_policies.h"
#include "faults/decode/injections.h"
#include "faults/decode/layer_policies.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::MetadataPolicy;
using device::decode::Policies;

struct TemporariesHandedOut final : MetadataPolicy {
  bool hands_out_persistent() const override { return false; }
};
// Number of copies, made by captures and three steps. Later copies are left out, so that a step
// finds an earlier step's data.
constexpr std::int64_t kCopiesBefore = 6;

class IndicesNotCopied final : public MetadataPolicy {
 public:
  explicit IndicesNotCopied(std::int64_t before = kCopiesBefore) : before_(before) {}
  bool copies_indices(std::int64_t copies) const override { return copies < before_; }

 private:
  std::int64_t before_;
};
class IndptrNotCopied final : public MetadataPolicy {
 public:
  explicit IndptrNotCopied(std::int64_t before = kCopiesBefore) : before_(before) {}
  bool copies_indptr(std::int64_t copies) const override { return copies < before_; }

 private:
  std::int64_t before_;
};

// Plants in which copies end with this step, or with one of the four steps before it.
template <class Policy>
std::vector<Plant> ends_before(std::int64_t builds) {
  constexpr std::int64_t kSteps = 4;
  std::vector<Plant> all;
  for (std::int64_t copies = builds; copies >= 0 && copies >= builds - kSteps; --copies) {
    all.push_back([copies](DecodeSetup setup) {
      setup.policies.metadata = std::make_shared<Policy>(copies);
      return setup;
    });
  }
  return all;
}

// Two steps at a time: the second is enqueued while the first is in progress.
DecodeSetup own_transfers(DecodeSetup setup) {
  setup.in_flight = 2;
  setup.conditions.policy = device::Policy::interleaved;
  setup.environment.delays = !setup.platform.starts_with("sim-");
  return policy<TransfersOnTheirOwn>(&Policies::transfers)(std::move(setup));
}

std::vector<DecodeFault> metadata_faults() {
  return {
      {"ragged_metadata_not_persistent", "vLLM #42604: a graph reads another step's addresses",
       "sparse_mla_decode", Detector::eager, Detector::path, kSteady,
       policy<TemporariesHandedOut>(&Policies::metadata)},
      {"ragged_indices_not_copied", "vLLM #42604: the graph's buffer keeps old indices",
       "copy_ragged_to_graph_buffers", Detector::candidates, Detector::reference, kLonger,
       policy<IndicesNotCopied>(&Policies::metadata), ends_before<IndicesNotCopied>},
      {"ragged_indptr_not_copied", "vLLM #42604: indices are copied, indptr is stale",
       "copy_ragged_to_graph_buffers", Detector::candidates, Detector::reference, kGrowing,
       policy<IndptrNotCopied>(&Policies::metadata), ends_before<IndptrNotCopied>},
      {"ragged_indptr_one_off", "vLLM #42604: indptr one off", "build_ragged_indices_from_dense",
       Detector::reference, Detector::eager, kRandom, mutant("ragged_indptr_one_off")},
      {"ragged_row_rounded_to_tile", "vLLM #42604: a row is read up to the end of its tile",
       "sparse_mla_decode", Detector::reference, Detector::candidates, kRandom,
       mutant("mla_ragged_row_to_its_tile")},
  };
}

std::vector<DecodeFault> ragged_host_faults() {
  return {
      {"host_sync_in_capture", "vLLM #42604: .item() inside a capture", "capture", Detector::error,
       Detector::cost, kSteady, policy<RowsFromTheDevice>(&Policies::shapes)},
      {"host_sync_at_every_step", "vLLM #42604: .item() at every build", "host", Detector::cost,
       Detector::eager, kSteady, policy<RowsFromTheDevice>(&Policies::shapes, GraphMode::none)},
      {"slices_follow_the_data", "vLLM #42604: slices by nnz, every step is captured anew",
       "capture", Detector::cost, Detector::eager, kSteady,
       policy<SlicesOfTheData>(&Policies::shapes)},
      {"staging_overwritten", "vLLM #42604: staging is written before its copies have run",
       "inputs", Detector::inputs, Detector::path, kShrink,
       both(policy<StagingNotWaitedFor>(&Policies::inputs),
            [](DecodeSetup setup) {
              setup.in_flight = 4;
              return with_late_device()(std::move(setup));
            })},
      {"inputs_rewritten_in_flight", "vLLM #42604: the next step's inputs overtake a replay",
       "inputs", Detector::inputs, Detector::path, kThereAndBack, own_transfers},
  };
}

std::vector<DecodeFault> format_faults() {
  return {
      {"hc_eps_lost", "vLLM #42604: a nested compile drops hc_eps", "hc_head", Detector::reference,
       Detector::eager, kRandom, changed_call(changed<HcEpsLost>())},
      {"fn_read_as_fnuz", "vLLM #42604: OCP bytes are read as fnuz", "sparse_mla_decode",
       Detector::reference, Detector::eager, kRandom, changed_call(changed<FnReadAsFnuz>())},
      {"fnuz_read_with_bias_15", "vLLM #42604: fnuz bytes are read as e4b15", "sparse_mla_decode",
       Detector::reference, Detector::eager, kRandom,
       both(mutant("mla_fnuz_with_bias_15"), with_fnuz_caches())},
      {"one_dialect_for_both_caches", "vLLM #42604: one flag for two caches", "sparse_mla_decode",
       Detector::reference, Detector::eager, kRandom,
       both(changed_call(changed<OneDialectForBoth>()), with_fnuz_caches())},
      {"ue8m0_exponent_one_off", "vLLM #42604: a scale is twice what its codes were made with",
       "quantize_and_insert_k_cache", Detector::reference, Detector::eager, kRandom,
       mutant("k_cache_scale_one_off")},
      {"ue8m0_exponent_truncated", "vLLM #42604: a scale is rounded down, so that codes saturate",
       "quantize_and_insert_k_cache", Detector::reference, Detector::eager, kRandom,
       mutant("k_cache_scale_truncated")},
  };
}

}  // namespace

std::vector<DecodeFault> faults_of_42604() {
  std::vector<DecodeFault> all;
  for (const auto& make : {metadata_faults, ragged_host_faults, format_faults}) {
    const std::vector<DecodeFault> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace plumb::cases
