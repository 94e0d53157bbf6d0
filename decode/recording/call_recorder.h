// SPDX-License-Identifier: Apache-2.0
//
// Copies of the tensors that each call of a decode step reads (made on the stream before the call)
// and writes (made after it). Weights are not copied. A graph captured with these copies runs the
// same step as a plain one. After its replay the copies still hold intermediates that the graph has
// overwritten, so each op is judged against the reference on exactly the bytes that it read.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/problem.h"
#include "decode/engine/memory.h"
#include "decode/engine/model.h"
#include "decode/recording/call_tensors.h"
#include "decode/recording/copy_memory.h"
#include "decode/watch/exchanged.h"
#include "device/caching_allocator.h"

namespace plumb::cases {

class CallRecorder final : public device::decode::CallObserver {
 public:
  // Which tensors of a call are copied. `rows`: only outputs that have a row per token of the part
  // or of the call's chunk, and the contents of these outputs before the call.
  enum class Kept { everything, rows };

  // All arguments outlive the recorder.
  CallRecorder(device::Device& device, const device::decode::Geometry& geometry,
               const device::Implementation& ops, const device::CachingAllocator& temporaries,
               Kept kept = Kept::everything);
  ~CallRecorder() override;

  void begin(const device::decode::StepPart& part) override;
  void before(const device::decode::Call& call, device::Stream stream) override;
  void after(const device::decode::Call& call, device::Stream stream) override;
  void captures(bool begins) override { captures_ = begins; }

  // One tensor of a call.
  struct TensorCopy {
    std::string tensor;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;  // copy with the device's layout; nullptr: a weight
    std::size_t bytes = 0;
    std::int64_t row_bytes = 0;    // distance of rows on the device; 0: as in the Problem
    bool before = false;           // copied before the call; else after it
    std::uint64_t allocation = 0;  // id in the allocator of temporaries
    int image = -1;                // image of the cache that it is read from; -1: `to`
  };
  struct CallRecording : JudgedCall {
    device::decode::CallPlace place;
    const device::OpEntry* entry = nullptr;
    TensorSet tensors;  // contents of the latest fetch; tensors of no fetch have no bytes
    std::vector<TensorCopy> copies;

    // True for an op that ran plumb's own kernel instead of one of the implementation under test.
    // Placeholders are not foreign.
    bool is_foreign() const { return problem != nullptr && entry == nullptr; }
    std::vector<TensorReport> judge() const { return compare(expect(tensors)); }
  };
  using Calls = std::vector<std::unique_ptr<CallRecording>>;

  // Called when the target begins to fill the caches of a request, outside of steps.
  using FillHook = std::function<void(const device::decode::StepPart& part)>;
  void when_filled(FillHook hook) { when_filled_ = std::move(hook); }
  // Names the calls that are replaced by the reference. Call it before the first call.
  void exchange(std::shared_ptr<const Exchanged> which) { exchanged_ = std::move(which); }
  // For steps too large to judge whole: judges `rows` rows of each call. Caches are read once
  // before and once after the step, not around each call. Call it before the first call.
  void sample(std::int64_t rows, const std::vector<device::decode::CacheView>& caches);
  // Fills scratch with `value` whenever the calls of another layer or chunk begin to write there:
  // they may not read what earlier ones have left. Call it before the first call.
  void overwrite_scratch(const std::vector<device::decode::EngineMemory::NamedBlock>& blocks,
                         std::uint8_t value);
  // Wrong tensors of a fetched call with `live` live tokens. A call with bytes that are already
  // known to be right gives no reports.
  std::vector<TensorReport> judge(const CallRecording& recording,
                                  const device::decode::StepPart& part, std::int64_t live,
                                  std::uint64_t seed) const;

  // Op of the latest call enqueued with an output at this address, in any step. nullptr: none.
  const std::string* last_writer(const std::byte* address) const;

  // Call at the start of a step. Enqueues a mark over the first bytes of each copy of all parts
  // that a graph may replay: a copy that is not made afterwards is read back as poison. Skips parts
  // that are marked already and were neither enqueued nor fetched since.
  void poison(device::Stream stream);
  // Whether a copy of a part's calls has been made since poison(). Their work must have finished.
  bool has_copies(const device::decode::StepPart& part);
  enum class Read { everything, outputs };
  // Reads back the calls of a part as they ran last. Their work must have finished. Throws
  // std::out_of_range for a part that never ran.
  const Calls& fetch(const device::decode::StepPart& part, Read read = Read::everything);
  // The latest part of this name that was enqueued or captured. nullopt: none.
  std::optional<device::decode::StepPart> latest(const std::string& part) const;
  // As fetch, without reading back.
  const Calls& enqueued(const device::decode::StepPart& part) const;

 private:
  std::vector<TensorReport> judge_whole(const CallRecording& recording) const;
  std::unique_ptr<CallRecording> recording_of(const device::decode::Call& call);
  std::unique_ptr<CallRecording> make_recording(const device::decode::Call& call);
  TensorCopy copy_of(const HostTensor& tensor, const Binding& bound,
                     const device::decode::CallPlace& place) const;
  bool is_kept(const TensorCopy& copy, const HostTensor& tensor,
               const device::decode::CallPlace& place) const;
  void place_copies(CallRecording& recording);
  void rebind(const std::vector<Binding>& bindings, CallRecording& recording);
  void copy(const CallRecording& recording, bool before, device::Stream stream);
  // Scratch, and the layer and chunk whose calls have written there last in this part.
  struct WrittenScratch {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    std::optional<device::decode::CallPlace> writer;
  };
  static bool is_in(const WrittenScratch& scratch, const TensorCopy& copy);
  void read_back(const TensorCopy& copy, CallRecording& recording);
  void overwrite_scratch_of(const CallRecording& recording, device::Stream stream);
  // The calls of a part, as it was enqueued last, with their copies.
  struct PartRecord {
    Calls calls;
    std::list<std::unique_ptr<CallRecording>> others;  // of runs before, in order
    std::vector<CopyMemory::CopyBlock> blocks;         // one per call that has copies
    bool poisoned = false;
  };
  // Host copies of a cache before and after the step.
  struct Image {
    const std::byte* address = nullptr;
    HostTensor before, after;
    bool read = false;  // whether `after` has been read in this step
  };
  int image_of(const Binding& bound, std::size_t bytes) const;
  void read_image(const TensorCopy& copy, CallRecording& recording);
  PartRecord& run_of(const device::decode::StepPart& part) const;
  device::Device& device_;
  const device::decode::Geometry& geometry_;
  const device::Implementation& ops_;
  const device::CachingAllocator& temporaries_;
  std::map<const std::byte*, std::string> writers_;  // op by output address
  const Kept kept_;
  std::shared_ptr<const Exchanged> exchanged_;
  device::Stream stream_;             // for read-backs
  std::vector<std::byte> row_bytes_;  // buffer for tensors with a larger row distance on the device
  std::map<std::pair<std::string, std::int64_t>, std::unique_ptr<PartRecord>> parts_;
  std::map<std::string, std::unique_ptr<PartRecord>, std::less<>>
      varying_;                                       // latest record of each varying part
  std::vector<std::unique_ptr<PartRecord>> retired_;  // replaced records, whose work may be pending
  std::map<std::string, device::decode::StepPart, std::less<>> latest_;  // latest part by name
  bool fills_ =
      false;  // true while the caches of a new request are filled: these calls are not recorded
  bool captures_ = false;  // true during a capture and its warm-up: only the graph makes copies
  FillHook when_filled_;
  CopyMemory memory_;
  PartRecord* current_ = nullptr;
  std::int64_t tokens_ = 0;  // of the current part
  std::int64_t sample_ = 0;  // rows of a call that are judged; 0: all
  std::vector<Image> images_;
  std::vector<WrittenScratch> scratch_;
  std::uint8_t scratch_value_ = 0;
};

// The dimension with one row per token; nullopt if there is none. In a scratch tensor the dimension
// of split-K parts comes first and is skipped. A plan has rows of tiles, so it has none.
std::optional<std::size_t> token_dimension(const HostTensor& tensor, std::int64_t tokens);

}  // namespace plumb::cases
