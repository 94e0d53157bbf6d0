// SPDX-License-Identifier: Apache-2.0
//
// Runs a case of one session: eager calls (also for scenario composition), or a captured graph that
// is replayed.
#include <fmt/format.h>

#include <algorithm>

#include "cases/drivers/session.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

constexpr DeadRows kDeadRows[] = {DeadRows::foreign, DeadRows::nan, DeadRows::huge, DeadRows::zero,
                                  DeadRows::infinity};

std::string_view content_of(DeadRows dead) {
  switch (dead) {
    case DeadRows::zero: return "zeros";
    case DeadRows::nan: return "NaN";
    case DeadRows::infinity: return "infinity";
    case DeadRows::huge: return "huge values";
    case DeadRows::foreign: return "another request's data";
  }
  return "?";
}

Poison other(Poison poison) { return poison == Poison::huge ? Poison::nan : Poison::huge; }

std::string join(const std::vector<device::GraphNode>& nodes) {
  std::string text;
  for (const device::GraphNode& node : nodes) {
    if (node.kind != "kernel") continue;
    text += (text.empty() ? "" : ", ") + node.name;
  }
  return text.empty() ? "no kernel" : text;
}

CapturedCall capture(Session& session, Buffers& buffers) {
  session.device().begin_capture(session.stream());
  session.launch(buffers);
  return end_capture(session);
}

TensorSet replay(Session& session, const CapturedCall& graph, const Buffers& buffers, Poison poison,
                 std::vector<std::string>& damage) {
  session.poison(buffers, poison);
  session.device().replay(graph.exec, session.stream());
  return session.read_back(buffers, poison, damage);
}

TensorSet call_on_fresh_state(Session& session, Buffers& buffers, Poison poison,
                              std::vector<std::string>& damage) {
  buffers.state = session.problem().make_state(buffers.addresses);
  session.poison(buffers, poison);
  session.launch(buffers);
  return session.read_back(buffers, poison, damage);
}

}  // namespace

CapturedCall end_capture(Session& session) {
  device::Device& device = session.device();
  const device::Graph graph = device.end_capture(session.stream());
  CapturedCall captured{device.instantiate(graph), join(device.nodes(graph))};
  device.destroy_graph(graph);
  return captured;
}

std::string describe(const Session& session, const Step& step, std::size_t index) {
  return fmt::format("step {}: {} of {} rows live, padded rows hold {}; {}", index, step.live,
                     session.problem().capacity(), content_of(step.dead_rows),
                     session.point().text());
}

Step make_step(const Session& session, const Scenario::ScenarioStep& plan, std::size_t index,
               std::uint64_t seed) {
  Step step;
  step.seed = mix(seed, 100 + static_cast<std::uint64_t>(plan.inputs));
  step.live = (session.problem().capacity() * plan.live_percent + 99) / 100;
  step.live = std::min(step.live, session.point().most_live.value_or(step.live));
  step.fill = session.point().fill;
  const std::size_t first = static_cast<std::size_t>(session.point().first_dead_rows);
  step.dead_rows = kDeadRows[(first + index) % std::size(kDeadRows)];
  return step;
}

void run_eager(Session& session, const Scenario& scenario, std::uint64_t seed) {
  Buffers buffers = session.make_buffers();
  for (std::size_t index = 0; index < scenario.steps.size(); ++index) {
    const Step step = make_step(session, scenario.steps[index], index, seed);
    const std::string context = describe(session, step, index);
    session.set_inputs(step, buffers);

    std::vector<std::string> damage;
    const Poison first = session.point().poison;
    buffers.state = session.problem().make_state(buffers.addresses);
    session.poison(buffers, first);
    session.launch(buffers);
    const TensorSet got = session.read_back(buffers, first, damage);
    session.judge(step, got, std::move(damage), context);
    session.remember(got, index);
    if (index == 0) session.show(step, got);
    if (static_cast<std::int64_t>(index) < session.point().first_compared) continue;

    std::vector<std::string> later_damage;
    const Poison second = other(first);
    session.poison(buffers, second);
    session.launch(buffers);
    const TensorSet again = session.read_back(buffers, second, later_damage);
    if (!later_damage.empty()) session.fail(context + "; second launch", later_damage);
    session.compare_bits(step, again, got, "second launch differs from the first", context);
  }
}

void run_full_graph(Session& session, const Scenario& scenario, std::uint64_t seed,
                    bool fresh_state_for_capture) {
  Buffers buffers = session.make_buffers();
  Buffers eager = session.make_buffers(&buffers);

  // Warm up at the captured size with inputs that no later step uses.
  const Step warm_up = make_step(session, {100, 0}, 0, seed);
  session.set_inputs(warm_up, buffers);
  session.poison(buffers, session.point().poison);
  session.launch(buffers);
  session.device().synchronize(session.stream());
  if (fresh_state_for_capture) buffers.state = session.problem().make_state(buffers.addresses);

  const CapturedCall graph = capture(session, buffers);
  eager.state = session.problem().make_state(eager.addresses);
  const CapturedCall fresh = capture(session, eager);
  if (graph.kernels != fresh.kernels) {
    session.fail("capture; " + session.point().text(),
                 {fmt::format("the captured graph launches {}; a call on fresh state launches {}",
                              graph.kernels, fresh.kernels)});
  }

  for (std::size_t index = 0; index < scenario.steps.size(); ++index) {
    const Step step = make_step(session, scenario.steps[index], index, seed);
    const std::string context = describe(session, step, index);
    session.set_inputs(step, buffers);

    std::vector<std::string> damage, later_damage;
    const Poison first = session.point().poison;
    const TensorSet got = replay(session, graph, buffers, first, damage);
    session.judge(step, got, std::move(damage), context);
    session.remember(got, index);
    if (static_cast<std::int64_t>(index) < session.point().first_compared) continue;
    if (scenario.steps[index].equals == Scenario::Equals::replay) {
      const TensorSet again = replay(session, graph, buffers, other(first), later_damage);
      session.compare_bits(step, again, got, "second replay differs from the first", context);
    } else {
      const TensorSet alone = call_on_fresh_state(session, eager, first, later_damage);
      session.compare_bits(step, got, alone, "replay differs from eager", context);
    }
    if (!later_damage.empty()) session.fail(context + "; second replay or eager", later_damage);
  }
}

}  // namespace plumb::cases
