// SPDX-License-Identifier: Apache-2.0
//
// Calls of one host thread that are all pending at the same time, on two streams in turns. Each
// call has its own inputs and buffers, and is compared bit by bit with the same call alone. A
// launcher that keeps the arguments or the scratch of its calls fails here if it keeps too few, or
// the same for both streams.
//
// Before them, the same op is captured for fewer rows, and the graph is replayed after them. A
// launcher that replaces its scratch by a larger one fails here if the graph still uses the first.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "cases/drivers/session.h"

namespace plumb::cases {

namespace {

constexpr std::size_t kStreamsInTurn = 2;

struct QueuedCall {
  std::unique_ptr<Session> session;
  Buffers buffers;
  Step step;
  std::string context;
};

class Queue {
 public:
  Queue(Session& alone, const Problem* smaller, const Scenario& scenario, std::uint64_t seed)
      : alone_(alone), scenario_(scenario), seed_(seed), buffers_(alone.make_buffers()) {
    if (smaller == nullptr) return;
    smaller_ = std::make_unique<Session>(alone, *smaller, "smaller", of_smaller_, alone.stream());
    of_smaller_.points = alone.result().points;
  }

  void run() {
    capture_smaller();
    warm_up();
    enqueue_all();
    alone_.device().synchronize(streams_[0]);
    alone_.device().synchronize(streams_[1]);
    bool same = true;
    for (QueuedCall& call : calls_) same = same && is_as_alone(call);
    if (same) replay_smaller();
  }

 private:
  // One call that is done before the next: nothing is pending when the queue begins.
  void warm_up() {
    alone_.set_inputs(make_step(alone_, {100, 0}, 0, seed_), buffers_);
    alone_.poison(buffers_, alone_.point().poison);
    alone_.launch(buffers_);
    alone_.device().synchronize(alone_.stream());
  }

  void capture_smaller() {
    if (!smaller_) return;
    smaller_buffers_ = smaller_->make_buffers();
    smaller_->set_inputs(make_step(*smaller_, {100, 0}, 0, seed_), smaller_buffers_);
    smaller_->poison(smaller_buffers_, alone_.point().poison);
    try {
      smaller_->launch(smaller_buffers_);
    } catch (const Unsupported&) {  // the op may need more rows
      return smaller_.reset();
    }
    smaller_->device().synchronize(smaller_->stream());
    smaller_buffers_.state = smaller_->problem().make_state(smaller_buffers_.addresses);
    smaller_->device().begin_capture(smaller_->stream());
    smaller_->launch(smaller_buffers_);
    graph_ = end_capture(*smaller_);
  }

  void enqueue_all() {
    streams_ = {alone_.stream(), alone_.device().create_stream()};
    for (std::size_t index = 0; index < scenario_.steps.size(); ++index) {
      QueuedCall& call = calls_.emplace_back();
      call.session = std::make_unique<Session>(alone_, fmt::format("call {}", index + 1),
                                               alone_.result(), streams_[index % kStreamsInTurn]);
      call.buffers = call.session->make_buffers();
      call.step = make_step(alone_, scenario_.steps[index], index, seed_);
      call.context = fmt::format("call {} of {}, {}", index + 1, scenario_.steps.size(),
                                 describe(alone_, call.step, index));
      call.session->set_inputs(call.step, call.buffers);
      call.session->poison(call.buffers, alone_.point().poison);
    }
    for (const device::Stream stream : streams_) alone_.device().synchronize(stream);
    for (QueuedCall& call : calls_) call.session->launch(call.buffers);
  }

  // Compares a call with the same call alone. The first one, and each of an op that is not
  // deterministic, is judged against the reference, too.
  bool is_as_alone(QueuedCall& call) {
    const std::vector<Failure>& failures = alone_.result().failures;
    std::vector<std::string> damage, damage_alone;
    const Poison poison = alone_.point().poison;
    const TensorSet got = call.session->read_back(call.buffers, poison, damage);
    if (!damage.empty()) call.session->fail(call.context, std::move(damage));
    alone_.set_inputs_of(*call.session, buffers_);
    buffers_.state = alone_.problem().make_state(buffers_.addresses);
    alone_.poison(buffers_, poison);
    alone_.launch(buffers_);
    const TensorSet alone = alone_.read_back(buffers_, poison, damage_alone);
    if (!damage_alone.empty()) alone_.fail(call.context + "; alone", std::move(damage_alone));
    if (!failures.empty()) return false;
    alone_.compare_bits(call.step, got, alone, "differs from the same call alone", call.context);
    if (!failures.empty()) {
      explain(call, alone);
    } else if (&call == calls_.data()) {
      alone_.judge(call.step, got, {}, call.context);
    }
    return failures.empty();
  }

  // Adds to the only failure that the call is right alone, if it is.
  void explain(const QueuedCall& call, const TensorSet& alone) {
    std::vector<Failure>& failures = alone_.result().failures;
    alone_.judge(call.step, alone, {}, call.context + "; alone");
    if (failures.size() > 1) return;
    failures.back().lines.push_back(
        "the same call is right alone: what it needs was changed while it was pending, by another "
        "call (arguments, plan or scratch that the launcher keeps for several calls)");
  }

  // Reports and evidence are of a problem with the row's own number of rows, so those of this
  // replay are not kept.
  void replay_smaller() {
    if (!smaller_) return;
    const Step step = make_step(*smaller_, {100, 1}, 1, seed_);
    smaller_->set_inputs(step, smaller_buffers_);
    smaller_->poison(smaller_buffers_, alone_.point().poison);
    smaller_->device().replay(graph_.exec, smaller_->stream());
    std::vector<std::string> damage;
    const TensorSet got = smaller_->read_back(smaller_buffers_, alone_.point().poison, damage);
    smaller_->judge(step, got, std::move(damage), describe(*smaller_, step, 0));
    for (const Failure& failure : of_smaller_.failures) {
      std::vector<std::string> lines = failure.lines;
      lines.push_back(
          "the graph was captured before the queued calls, which have more rows: it may use what "
          "the launcher has replaced since");
      alone_.fail("replay of a graph for fewer rows, " + failure.context, std::move(lines));
    }
  }

  Session& alone_;
  const Scenario& scenario_;
  const std::uint64_t seed_;
  Buffers buffers_;  // of the calls alone
  std::array<device::Stream, kStreamsInTurn> streams_ = {};
  std::vector<QueuedCall> calls_;
  CaseResult of_smaller_;
  std::unique_ptr<Session> smaller_;
  Buffers smaller_buffers_;
  CapturedCall graph_;
};

}  // namespace

void run_queued(Session& alone, const Problem* smaller, const Scenario& scenario,
                std::uint64_t seed) {
  require_memory(alone, std::ssize(scenario.steps), "pending calls");
  Queue(alone, smaller, scenario, seed).run();
}

}  // namespace plumb::cases
