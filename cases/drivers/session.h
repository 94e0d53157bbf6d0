// SPDX-License-Identifier: Apache-2.0
//
// A problem on a device under one point: its buffers, what is uploaded, poisoned, launched and read
// back, and every check that no op has to ask for (inputs unchanged, gaps and guards intact).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// Device memory of a tensor set. Inputs may belong to another Buffers.
struct Buffers {
  DeviceTensors addresses;
  std::shared_ptr<OpState> state;
};

// The op refused the shape: the case is skipped.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A real device has too little memory left for the tensors of a case. What a kernel allocates for
// itself is not among them.
class NoMemoryLeft : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

inline double in_gib(std::size_t bytes) { return static_cast<double>(bytes) / 0x1p30; }

// For one host thread.
class Session {
 public:
  Session(const Problem& problem, const Case& which, const Point& point, const RunOptions& options,
          CaseResult& result);
  // Another one on the same device, with a stream of its own. `owner` is in the labels of its
  // memory.
  Session(const Session& beside, std::string owner, CaseResult& result);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // All tensors, or with `inputs_of` only outputs, scratch and state beside the other's inputs.
  // Throws NoMemoryLeft.
  Buffers make_buffers(const Buffers* inputs_of = nullptr);
  void set_inputs(const Step& step, const Buffers& buffers);         // fill and upload
  void set_inputs_of(const Session& other, const Buffers& buffers);  // the same as there
  // What outputs and scratch hold before a launch: poison, or the input that they start as.
  void poison(const Buffers& buffers, Poison poison);
  void launch(Buffers& buffers);
  // Reads everything back and checks what is not the op's: damage is appended to `lines`. The
  // inputs of the result are those of the session, until the next step fills them.
  TensorSet read_back(const Buffers& buffers, Poison poison, std::vector<std::string>& lines);
  // The two halves: of these buffers, and of every allocation of the device.
  TensorSet fetch(const Buffers& buffers, Poison poison, std::vector<std::string>& lines);
  void check_guards(std::vector<std::string>& lines);

  // What a step stored, so that a later one can be seen to store it again.
  void remember(const TensorSet& got, std::size_t index);

  // Reference and judge; failing reports go to a Failure with this context.
  void judge(const Step& step, const TensorSet& got, std::vector<std::string> damage,
             const std::string& context);
  // Bit-for-bit, on the rows that the op promises, but for what the declaration leaves open.
  // Nothing if the op promises no determinism.
  void compare_bits(const Step& step, const TensorSet& got, const TensorSet& expected,
                    const std::string& what, const std::string& context);
  void fail(const std::string& context, std::vector<std::string> lines,
            std::vector<TensorReport> reports = {});
  // The next failure without reports has this kind, unless `lines` is empty or there was an earlier
  // one.
  void note_damage(std::string_view kind, const std::vector<std::string>& lines);
  // Of a case's first launch: tells who wants to know.
  void show(const Step& step, const TensorSet& got) const;

  device::Device& device() { return *device_; }
  device::Stream stream() { return stream_; }
  const Problem& problem() const { return problem_; }
  const Point& point() const { return point_; }
  bool deterministic() const { return declared_.deterministic != 0; }
  // What the entry promises of the latest launch.
  const plumb_numerics& declared() const { return declared_; }
  CaseResult& result() { return result_; }

 private:
  void* allocate(const HostTensor& tensor);
  void upload(const Buffers& buffers);
  std::shared_ptr<const Clues> clues_of(Poison poison) const;
  void read_tensor(const Buffers& buffers, const HostTensor& tensor, std::byte* to);
  // Of the problem's verdict, computed or known.
  std::vector<TensorReport> reports_of(const Step& step, const TensorSet& got);
  void summarize(const TensorReport& report);
  // A copy, if there is none yet.
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
  TensorSet host_;                           // inputs of the current step; outputs unused
  Poison poison_ = Poison::nan;              // the latest
  Bytes read_;                               // inputs as they came back
  std::vector<Clues::EarlierStep> earlier_;  // the latest few
  std::string damage_;  // Failure::kind of what was found since the latest failure
};

// A captured call and the kernels in it.
struct CapturedCall {
  device::GraphExec exec = nullptr;
  std::string kernels;
};
// Ends the capture of the session's stream.
CapturedCall end_capture(Session& session);

// The scenarios.
void run_eager(Session& session, const Scenario& scenario, std::uint64_t seed);
void run_full_graph(Session& session, const Scenario& scenario, std::uint64_t seed,
                    bool fresh_state_for_capture);
void run_concurrent(Session& alone, const Scenario& scenario, std::uint64_t seed,
                    const RunOptions& options);

// Live rows of a step, and the kind of padding it gets.
Step make_step(const Session& session, const Scenario::ScenarioStep& plan, std::size_t index,
               std::uint64_t seed);
// "step 2: 3 of 7 rows live, dead rows nan; real fill, ..."
std::string describe(const Session& session, const Step& step, std::size_t index);

}  // namespace plumb::cases
