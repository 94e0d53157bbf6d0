// SPDX-License-Identifier: Apache-2.0
//
// Capture and replay on the simulated device: what a graph keeps, which calls a capture refuses,
// and that a missing dependency between branches gives wrong results.
#include <cstring>
#include <thread>
#include <vector>

#include "device/plugin/hosted_device.h"
#include "device/sim/simt_back_end.h"
#include "tests/support/sim_device_fixture.h"

namespace plumb::device {
namespace sim_capture_test {

using SimCapture = SimDeviceTest;

constexpr Policy kPolicies[] = {Policy::early, Policy::late};

TEST_F(SimCapture, RecordsInsteadOfRunningAndRunsAtEveryReplay) {
  for (const Policy policy : kPolicies) {
    open(policy);
    std::int32_t* x = ints(2);
    device->fill(x, 0, 8, stream);
    device->begin_capture(stream);
    launch(stream, "add", [x] { x[0] += 1; });
    device->copy(x + 1, x, 4, stream);
    const Graph graph = device->end_capture(stream);
    const GraphExec exec = device->instantiate(graph);
    device->destroy_graph(graph);
    EXPECT_EQ(read(x), 0);
    for (int i = 0; i < 3; ++i) device->replay(exec, stream);
    EXPECT_EQ(read(x + 1), 3);
  }
}

void store(std::int32_t* at, std::int32_t value) { *at = value; }

TEST_F(SimCapture, FreezesArgumentsByValueButReadsMemoryAtReplay) {
  for (const Policy policy : kPolicies) {
    open(policy);
    std::int32_t* x = ints(3);
    std::int32_t* staging = pinned_ints(1);
    std::int32_t argument = 1, pageable = 1;
    *staging = 1;
    const GraphExec exec = captured([&] {
      const sim::LaunchShape shape;
      sim::enqueue(stream, kernels::make_call<store>("store", shape, x, argument));
      device->copy(x + 1, staging, 4, stream);
      device->copy(x + 2, &pageable, 4, stream);
    });
    argument = pageable = *staging = 2;
    device->replay(exec, stream);
    device->synchronize(stream);
    EXPECT_EQ(read(x), 1);
    EXPECT_EQ(read(x + 1), 2);
    EXPECT_EQ(read(x + 2), 2);
  }
}

TEST_F(SimCapture, ListsItsNodesInRecordOrder) {
  open(Policy::late);
  std::int32_t* x = ints(2);
  device->begin_capture(stream);
  launch(stream, "first", [] {});
  device->copy(x + 1, x, 4, stream);
  device->fill(x, 0, 4, stream);
  device->call_host([](void*) {}, nullptr, stream);
  std::string listed;
  for (const GraphNode& node : device->nodes(device->end_capture(stream))) {
    listed += node.kind + ":" + node.name + " ";
  }
  EXPECT_EQ(listed, "kernel:first copy: fill: host: ");
}

TEST_F(SimCapture, WithoutNodesIsLegal) {
  open(Policy::late);
  const GraphExec exec = captured([] {});
  device->replay(exec, stream);
  device->synchronize(stream);
}

// A call that is refused during a capture; `call` is its name in the error.
struct Forbidden {
  const char* call;
  std::function<void(Device&, Stream, Event, void*)> action;
};

TEST_F(SimCapture, RefusesWhatItMayNotContainAndIsInvalidFromThenOn) {
  static std::int32_t pageable = 0;
  const Forbidden forbidden[] = {
      {"allocate during", [](auto& d, auto, auto, auto) { d.allocate(16, "x"); }},
      {"allocate_sparse during", [](auto& d, auto, auto, auto) { d.allocate_sparse(16, "x"); }},
      {"allocate_pinned during", [](auto& d, auto, auto, auto) { d.allocate_pinned(16); }},
      {"free during", [](auto& d, auto, auto, auto x) { d.free(x); }},
      {"synchronize(stream) during", [](auto& d, auto s, auto, auto) { d.synchronize(s); }},
      {"synchronize() of the device during", [](auto& d, auto, auto, auto) { d.synchronize(); }},
      {"synchronize_event during",
       [](auto& d, auto s, auto e, auto) {
         d.record(e, s);
         d.synchronize_event(e);
       }},
      {"copy to pageable memory during",
       [](auto& d, auto s, auto, auto x) { d.copy(&pageable, x, 4, s); }},
  };
  for (const Forbidden& one : forbidden) {
    open(Policy::early);
    std::int32_t* x = ints(1);
    const Event event = device->create_event();
    device->begin_capture(stream);
    expect_error([&] { one.action(*device, stream, event, x); },
                 std::string("capture_unsupported: ") + one.call);
    expect_error([&] { launch(stream, "next", [] {}); }, "capture_invalid: kernel 'next'");
    expect_error([&] { device->end_capture(stream); },
                 std::string("capture_invalid: end_capture: the capture of stream 1 is invalid "
                             "since: ") +
                     one.call);
    device->fill(x, 1, 4, stream);  // outside of the capture the stream works again
    EXPECT_EQ(read(x), 0x01010101);
  }
}

TEST_F(SimCapture, ForbidsAllocationToItsOwnThreadOnly) {
  open(Policy::early);
  device->begin_capture(stream);
  std::string error;
  std::thread([&] { error = error_of([&] { device->allocate(16, "x"); }); }).join();
  EXPECT_EQ(error, "no error");
  std::thread([&] { error = error_of([&] { device->end_capture(stream); }); }).join();
  EXPECT_EQ(error, "capture_invalid: end_capture: another host thread began it");
  device->end_capture(stream);
}

TEST_F(SimCapture, NamesCallsInAWrongState) {
  open(Policy::early);
  expect_error([&] { device->end_capture(stream); },
               "capture_invalid: end_capture: no capture began");
  device->begin_capture(stream);
  expect_error([&] { device->begin_capture(stream); },
               "capture_invalid: begin_capture: stream 1 is being");
  const Graph graph = device->end_capture(stream);
  const GraphExec exec = device->instantiate(graph);
  device->destroy_graph(graph);
  expect_error([&] { device->instantiate(graph); }, "capture_invalid: instantiate: no such graph");
  device->destroy_graph_exec(exec);
  expect_error([&] { device->replay(exec, stream); }, "capture_invalid: replay: no such graph");
}

// `produce` runs on one branch, `consume` on the other. With `edge`, consume waits for produce.
class SimGraphBranches : public SimDeviceTest {
 protected:
  GraphExec fork_and_join(bool edge) {
    side = device->create_stream();
    const Event forked = device->create_event(), produced = device->create_event(),
                joined = device->create_event();
    x = ints(2);
    return captured([&] {
      device->fill(x, 0, 8, stream);
      device->record(forked, stream);
      device->wait(side, forked);
      launch(stream, "produce", [at = x] { at[0] = 7; });
      device->record(produced, stream);
      if (edge) device->wait(side, produced);
      launch(side, "consume", [at = x] { at[1] = at[0]; });
      device->record(joined, side);
      device->wait(stream, joined);
    });
  }

  Stream side = nullptr;
  std::int32_t* x = nullptr;
};

TEST_F(SimGraphBranches, AreOrderedByTheirEventsAndAMissingOneShowsUnderLate) {
  for (const Policy policy : kPolicies) {
    for (const bool edge : {false, true}) {
      open(policy);
      const GraphExec exec = fork_and_join(edge);
      device->replay(exec, stream);
      device->synchronize(stream);
      EXPECT_EQ(x[1], edge || policy == Policy::early ? 7 : 0);
    }
  }
}

TEST_F(SimGraphBranches, LeaveTheCaptureAtItsEnd) {
  open(Policy::late);
  fork_and_join(true);
  launch(side, "eager", [at = x] { at[0] = 3; });
  device->synchronize(side);
  EXPECT_EQ(x[0], 3);
}

TEST_F(SimCapture, OfABranchThatIsNotJoinedIsInvalid) {
  open(Policy::early);
  const Stream side = device->create_stream();
  const Event forked = device->create_event();
  device->begin_capture(stream);
  device->record(forked, stream);
  device->wait(side, forked);
  launch(side, "lonely", [] {});
  expect_error([&] { device->end_capture(side); },
               "capture_invalid: end_capture: no capture began");
  expect_error([&] { device->end_capture(stream); },
               "capture_invalid: end_capture: stream 1 does not wait for kernel 'lonely'");
}

TEST_F(SimCapture, CannotWaitForWorkOutsideOrInAnotherCapture) {
  open(Policy::early);
  const Stream other = device->create_stream();
  const Event event = device->create_event();
  device->record(event, other);
  device->begin_capture(stream);
  expect_error([&] { device->wait(stream, event); },
               "capture_unsupported: wait of stream 1 for an event");
  expect_error([&] { device->end_capture(stream); }, "capture_invalid");

  device->begin_capture(other);
  device->record(event, other);
  device->begin_capture(stream);
  expect_error([&] { device->wait(stream, event); },
               "capture_unsupported: wait for an event of the capture");
  expect_error([&] { device->end_capture(stream); }, "capture_invalid");
  device->end_capture(other);
  expect_error([&] { device->wait(stream, event); },
               "capture_invalid: wait: event 1 was recorded in a");
}

TEST_F(SimCapture, ReplaysOfOneGraphRunInTheOrderOfTheirLaunches) {
  open(Policy::late);
  const Stream other = device->create_stream();
  std::int32_t* x = ints(1);
  *x = 0;
  const GraphExec exec = captured([&] { launch(stream, "add", [x] { *x += 1; }); });
  device->replay(exec, stream);
  device->replay(exec, other);
  device->synchronize(other);
  EXPECT_EQ(*x, 2);
}

TEST_F(SimCapture, ReplayFindsMemoryThatWasFreedSince) {
  open(Policy::late);
  std::int32_t* x = ints(1, "scores");
  const GraphExec exec = captured([&] { device->fill(x, 0, 4, stream); });
  device->free(x);
  expect_error([&] { device->synchronize(); }, "held_by_graph");
  device->replay(exec, stream);
  expect_error([&] { device->synchronize(stream); },
               "use_after_free: fill: bytes 0 to 4 of 'scores'");
}

TEST_F(SimCapture, MemoryThatAGraphWouldUseIsNotGivenBackUnnoticed) {
  open(Policy::late);
  std::int32_t *argument = ints(4, "argument"), *from = ints(1, "from"), *to = ints(1, "to"),
               *unused = ints(1, "unused"), *staging = pinned_ints(1);
  const GraphExec exec = captured([&] {
    sim::enqueue(stream, kernels::make_call<store>("store", sim::LaunchShape{}, argument + 3, 1));
    device->copy(to, from, 4, stream);
    device->copy(to, staging, 4, stream);
  });
  const auto error_after_free = [&](void* memory) {
    device->free(memory);
    return error_of([&] { device->synchronize(); });
  };
  EXPECT_EQ(error_after_free(argument),
            "held_by_graph: 'argument' was freed, but kernel 'store' of a live graph uses it");
  EXPECT_EQ(error_of([&] { device->synchronize(); }), "no error");  // each error is reported once
  EXPECT_NE(error_after_free(from).find("held_by_graph: 'from'"), std::string::npos);
  device->free_pinned(staging);
  expect_error([&] { device->synchronize(); }, "held_by_graph: 'pinned memory'");
  EXPECT_EQ(error_after_free(unused), "no error");
  device->destroy_graph_exec(exec);
  EXPECT_EQ(error_after_free(to), "no error");
}

// Compilers leave padding bytes between members uninitialised. Next to a number they may look like
// an address.
struct Padded {
  std::int32_t* at;
  float eps;
};
void store_padded(Padded p) { *p.at = 1; }

TEST_F(SimCapture, BytesThatBelongToNoMemberAreNoAddress) {
  open(Policy::late);
  std::int32_t *used = ints(4, "used"), *other = ints(4, "other");
  Padded padded;
  const std::int32_t* const within = other + 1;
  static_assert(sizeof(Padded) == 2 * sizeof within);
  std::memcpy(&padded, &used, sizeof used);
  std::memcpy(reinterpret_cast<std::byte*>(&padded) + sizeof used, &within, sizeof within);
  captured([&] {
    const sim::LaunchShape shape;
    sim::enqueue(stream, kernels::make_call<store_padded>("store_padded", shape, padded));
  });
  device->free(other);
  EXPECT_EQ(error_of([&] { device->synchronize(); }), "no error");
  device->free(used);
  expect_error([&] { device->synchronize(); }, "held_by_graph: 'used'");
}

// A plug-in's workspace grows while the graph keeps the address of the old one.
TEST_F(SimCapture, ScratchThatAGraphWouldUseIsNotGivenBackUnnoticed) {
  HostedDevice hosted(open_device("sim-sm90"));
  const Stream own = hosted.create_stream();
  void* const workspace = hosted.allocate_scratch(1000, own);
  const auto nothing = [](const void*) {};
  hosted.begin_capture(own);
  hosted.launch_frozen("split", nothing, &workspace, sizeof workspace, own);
  const GraphExec exec = hosted.instantiate(hosted.end_capture(own));
  // Releasing scratch poisons it, which executes pending work and reports the error.
  expect_error([&] { hosted.release_scratch(workspace, own); },
               "held_by_graph: 'scratch' was freed, but host function 'split' of a live graph");
  void* const next = hosted.allocate_scratch(1000, own);
  hosted.launch_frozen("split", nothing, &next, sizeof next, own);
  hosted.release_scratch(next, own);
  EXPECT_EQ(error_of([&] { hosted.synchronize(); }), "no error");
  hosted.destroy_graph_exec(exec);
}

}  // namespace sim_capture_test
}  // namespace plumb::device
