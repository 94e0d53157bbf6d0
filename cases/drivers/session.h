// SPDX-License-Identifier: Apache-2.0
//
// Runs a problem on a device under one point. Manages its buffers, uploads, poisons, launches and
// reads back. Checks for every op that inputs are unchanged and that gaps and guard zones are
// intact.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// Device memory of a tensor set. The inputs may be owned by another Buffers.
struct Buffers {
  DeviceTensors addresses;
  std::shared_ptr<OpState> state;
};

// The case cannot run (the op refuses the shape, or lacks a kernel), and is skipped.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A real device has too little memory for the tensors of a case. Memory that a kernel allocates for
// itself is not counted.
class NoMemoryLeft : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

inline double in_gib(std::size_t bytes) { return static_cast<double>(bytes) / 0x1p30; }

// Use from one host thread only.
class Session {
 public:
  Session(const Problem& problem, const Case& which, const Point& point, const RunOptions& options,
          CaseResult& result);
  // Another session on the device of `beside`. Memory labels start with `owner`. Without `stream`
  // it has its own.
  Session(const Session& beside, std::string owner, CaseResult& result,
          device::Stream stream = nullptr);
  // As above, for another problem of the same op.
  Session(const Session& beside, const Problem& problem, std::string owner, CaseResult& result,
          device::Stream stream);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Allocates all tensors. With `inputs_of`, the inputs are shared with that Buffers and only
  // outputs, scratch and state are allocated. Throws NoMemoryLeft.
  Buffers make_buffers(const Buffers* inputs_of = nullptr);
  void set_inputs(const Step& step, const Buffers& buffers);         // fill and upload
  void set_inputs_of(const Session& other, const Buffers& buffers);  // upload the inputs of `other`
  // Resets outputs and scratch before a launch: to poison, or to the input that they start as.
  void poison(const Buffers& buffers, Poison poison);
  void launch(Buffers& buffers);
  // Reads all tensors back and does the checks that hold for every op. Damage (a changed input, a
  // written gap, a damaged guard zone) is appended to `lines`. The inputs of the result stay valid
  // until the next step fills them.
  TensorSet read_back(const Buffers& buffers, Poison poison, std::vector<std::string>& lines);
  // The two halves of read_back: fetch reads these buffers, check_guards checks every allocation of
  // the device.
  TensorSet fetch(const Buffers& buffers, Poison poison, std::vector<std::string>& lines);
  void check_guards(std::vector<std::string>& lines);

  // Keeps the stored outputs of a step, so that a later step that stores them again is recognised
  // as stale.
  void remember(const TensorSet& got, std::size_t index);

  // Computes the reference and judges `got`. Failing reports become a Failure with this context.
  void judge(const Step& step, const TensorSet& got, std::vector<std::string> damage,
             const std::string& context);
  // Compares rows that the op promises bit by bit, except bits that the declaration leaves open.
  // For a nondeterministic op, judges both results against the reference instead.
  void compare_bits(const Step& step, const TensorSet& got, const TensorSet& expected,
                    const std::string& what, const std::string& context);
  void fail(const std::string& context, std::vector<std::string> lines,
            std::vector<TensorReport> reports = {});
  // Sets Failure::kind for the next failure without reports. Ignored if `lines` is empty or a kind
  // is already set.
  void note_damage(std::string_view kind, const std::vector<std::string>& lines);
  // Passes a launch of the case's first point to RunOptions::on_real_launch, if its fill is real
  // and all rows are live.
  void show(const Step& step, const TensorSet& got) const;

  device::Device& device() { return *device_; }
  device::Stream stream() { return stream_; }
  const Problem& problem() const { return problem_; }
  const Point& point() const { return point_; }
  bool deterministic() const { return declared_.deterministic != 0; }
  // Numerics that the entry declares for the latest launch.
  const plumb_numerics& declared() const { return declared_; }
  CaseResult& result() { return result_; }

 private:
  void* allocate(const HostTensor& tensor);
  void upload(const Buffers& buffers);
  std::shared_ptr<const Clues> clues_of(Poison poison) const;
  void read_tensor(const Buffers& buffers, const HostTensor& tensor, std::byte* to);
  // Puts address_number() in place of addresses of this call's tensors.
  void number_addresses(const Buffers& buffers, HostTensor& stored) const;
  // Reports of the problem's verdict: computed, or taken from known_verdicts.
  std::vector<TensorReport> reports_of(const Step& step, const TensorSet& got);
  void summarize(const TensorReport& report);
  // Copies the failed verdict's data, unless the result already holds an earlier one.
  void keep_evidence(const Step& step, const TensorSet& got);

  const Problem& problem_;
  const Point& point_;
  CaseResult& result_;
  std::shared_ptr<device::Device> device_;
  std::string owner_;
  const device::OpEntry* entry_ = nullptr;
  std::function<void(plumb_numerics&)> redeclare_;
  std::function<void(const Problem&, const Launched&)> on_real_launch_;
  plumb_numerics declared_ = {};
  device::Stream stream_ = nullptr;
  TensorSet host_;                           // inputs of the current step; its outputs are unused
  Poison poison_ = Poison::nan;              // poison of the latest launch
  Bytes read_;                               // buffer for inputs read back
  std::vector<Clues::EarlierStep> earlier_;  // outputs of the last few steps
  std::string damage_;  // Failure::kind for damage found since the latest failure
};

// A row with far-apart addresses takes, on a real device, all memory that its addresses span: once
// per copy and once for the work alone. Throws Unsupported if that exceeds three quarters of the
// device's memory. The last quarter is left for the background load, the kernel's own allocations
// and other processes.
void require_memory(Session& alone, std::int64_t copies, std::string_view what);

// A captured call and the names of its kernels.
struct CapturedCall {
  device::GraphExec exec = nullptr;
  std::string kernels;
};
// Ends the capture on the session's stream and instantiates the graph.
CapturedCall end_capture(Session& session);

void run_eager(Session& session, const Scenario& scenario, std::uint64_t seed);
void run_full_graph(Session& session, const Scenario& scenario, std::uint64_t seed,
                    bool fresh_state_for_capture);
void run_concurrent(Session& alone, const Scenario& scenario, std::uint64_t seed,
                    const RunOptions& options);
// smaller: the same row with fewer rows; null if there is none.
void run_queued(Session& alone, const Problem* smaller, const Scenario& scenario,
                std::uint64_t seed);

// A step of the scenario with its live rows, fill and kind of padding.
Step make_step(const Session& session, const Scenario::ScenarioStep& plan, std::size_t index,
               std::uint64_t seed);
// Text for reports: "step 2: 3 of 7 rows live, dead rows nan; real fill, ..."
std::string describe(const Session& session, const Step& step, std::size_t index);

}  // namespace plumb::cases
