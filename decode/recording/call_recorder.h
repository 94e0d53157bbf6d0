// SPDX-License-Identifier: Apache-2.0
//
// Copies of what every call of a decode step reads and writes, taken on the stream around the call.
// A step that is captured with them is a twin of the plain one: after its replay the intermediates
// that the graph itself has overwritten are still there, and each op is judged against the
// reference on exactly the bytes that it was given.
#pragma once

#include <functional>
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
#include "decode/watch/exchanged.h"
#include "device/caching_allocator.h"

namespace plumb::cases {

class CallRecorder final : public device::decode::CallObserver {
 public:
  // What is copied of a call. `rows`: outputs with a row per token of the part, and what they held
  // before.
  enum class Kept { everything, rows };

  // Both outlive the recorder.
  CallRecorder(device::Device& device, const device::decode::Geometry& geometry,
               const device::Implementation& ops, const device::CachingAllocator& temporaries,
               Kept kept = Kept::everything);
  ~CallRecorder() override;

  void begin(const device::decode::StepPart& part) override;
  void before(const device::decode::Call& call, device::Stream stream) override;
  void after(const device::decode::Call& call, device::Stream stream) override;

  // One tensor of a call.
  struct TensorCopy {
    std::string tensor;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;  // the copy, packed as it is there; none of a weight
    std::size_t bytes = 0;
    std::int64_t row_bytes = 0;    // there; 0: as in the Problem's tensor
    bool before = false;           // the call, else behind it
    std::uint64_t allocation = 0;  // of the allocator that memory comes from and goes back to
    int image = -1;                // of the cache that it is read from; -1: from `to`
  };
  struct CallRecording : JudgedCall {
    device::decode::CallPlace place;
    const device::OpEntry* entry = nullptr;
    TensorSet tensors;  // as fetched last
    std::vector<TensorCopy> copies;

    // Not of the implementation under test, nor what stands beside its ops.
    bool is_foreign() const { return problem != nullptr && entry == nullptr; }
    std::vector<TensorReport> judge() const { return compare(expect(tensors)); }
  };
  using Calls = std::vector<std::unique_ptr<CallRecording>>;

  // Called when the target begins to fill the caches of a request, outside of steps.
  using FillHook = std::function<void(const device::decode::StepPart& part)>;
  void when_filled(FillHook hook) { when_filled_ = std::move(hook); }
  // Whose calls the reference stands in for. Before the first call.
  void exchange(std::shared_ptr<const Exchanged> which) { exchanged_ = std::move(which); }
  // For steps that are too large to be judged whole: of each call `rows` are, and caches are read
  // as the step found them and left them, not around each call. Before the first call.
  void sample(std::int64_t rows, const std::vector<device::decode::CacheView>& caches);
  // What is wrong with a fetched call of so many live tokens. Of one that is known to be right
  // there are no reports.
  std::vector<TensorReport> judge(const CallRecording& recording,
                                  const device::decode::StepPart& part, std::int64_t live,
                                  std::uint64_t seed) const;

  // The call that was the last to be enqueued with this output, in whatever step. nullptr: none.
  const std::string* last_writer(const std::byte* address) const;

  // A step begins: enqueues poison over all copies that have not been poisoned since they were
  // enqueued or fetched last, so that what no call has written since shows.
  void poison(device::Stream stream);
  enum class Read { everything, outputs };
  // The calls of a part as they ran last; their work is over. Reads them back. Throws
  // std::out_of_range for a part that never ran.
  const Calls& fetch(const device::decode::StepPart& part, Read read = Read::everything);
  // The part of this name that was enqueued last, also in a capture. Nothing: none was.
  std::optional<device::decode::StepPart> latest(const std::string& part) const;
  // As fetch, but reads nothing back.
  const Calls& enqueued(const device::decode::StepPart& part) const;

 private:
  std::vector<TensorReport> judge_whole(const CallRecording& recording) const;
  std::unique_ptr<CallRecording> make_recording(const device::decode::Call& call);
  TensorCopy copy_of(const HostTensor& tensor, const Binding& bound) const;
  void place_copies(CallRecording& recording);
  void rebind(const std::vector<Binding>& bindings, CallRecording& recording);
  void copy(const CallRecording& recording, bool before, device::Stream stream);
  void read_back(const TensorCopy& copy, CallRecording& recording);
  // Memory of a call's copies.
  struct CopyBlock {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
  };
  CopyBlock take_block(std::size_t bytes);
  // A part's calls and their copies.
  struct PartRecord {
    Calls calls;
    std::vector<CopyBlock> blocks;
    bool poisoned = false;
  };
  // A cache as it was before and behind the step.
  struct Image {
    const std::byte* address = nullptr;
    HostTensor before, after;
    bool read = false;  // behind the step
  };
  int image_of(const Binding& bound, std::size_t bytes) const;
  void read_image(const TensorCopy& copy, CallRecording& recording);
  PartRecord& run_of(const device::decode::StepPart& part) const;
  device::Device& device_;
  const device::decode::Geometry& geometry_;
  const device::Implementation& ops_;
  const device::CachingAllocator& temporaries_;
  std::map<const std::byte*, std::string> writers_;  // op, by address of the output
  const Kept kept_;
  std::shared_ptr<const Exchanged> exchanged_;
  device::Stream stream_;             // for reading back
  std::vector<std::byte> row_bytes_;  // read back, of rows that are further apart
  std::map<std::pair<std::string, std::int64_t>, std::unique_ptr<PartRecord>> parts_;
  std::map<std::string, std::unique_ptr<PartRecord>, std::less<>>
      varying_;                                       // the latest run of each
  std::vector<std::unique_ptr<PartRecord>> retired_;  // their work may be pending
  std::map<std::string, device::decode::StepPart, std::less<>> latest_;  // by name
  bool fills_ =
      false;  // true while the caches of a new request are filled: these calls are not recorded
  FillHook when_filled_;
  device::decode::EngineMemory memory_;
  std::vector<CopyBlock> spare_;  // of records that nobody needs any more
  PartRecord* current_ = nullptr;
  std::int64_t tokens_ = 0;  // of the part
  std::size_t next_ = 0;     // call of the part
  std::int64_t sample_ = 0;  // rows of a call that are judged; 0: all
  std::vector<Image> images_;
};

// The dimension with rows of one token each; nothing if there is none. That of a scratch tensor
// comes behind the parts of which a sum is made; a plan, whose rows are tiles, has none.
std::optional<std::size_t> token_dimension(const HostTensor& tensor, std::int64_t tokens);

}  // namespace plumb::cases
