// SPDX-License-Identifier: Apache-2.0
//
// A captured stream's frontier: the nodes on which its next node depends. A captured event has a
// copy of one.
#include "device/sim/streams/capture.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace plumb::device::sim {

namespace {

void require_unspoilt(const Capture& capture, const std::string& call) {
  if (capture.offence.empty()) return;
  throw DeviceError(ErrorKind::capture_invalid, call + ": the capture of " +
                                                    name_of(*capture.origin) +
                                                    " is invalid since: " + capture.offence);
}

// First node on which the origin's last operation does not depend, or -1.
int unjoined_node(const Capture& capture) {
  std::vector<bool> joined(capture.nodes.size(), false);
  for (int last : capture.last) joined[last] = true;
  for (int i = static_cast<int>(capture.nodes.size()) - 1; i >= 0; --i) {
    if (!joined[i]) continue;
    for (int need : capture.nodes[i].needs) joined[need] = true;
  }
  const auto found = std::find(joined.begin(), joined.end(), false);
  return found == joined.end() ? -1 : static_cast<int>(found - joined.begin());
}

}  // namespace

void append(StreamState& stream, Operation operation) {
  Capture& capture = *stream.capture;
  require_unspoilt(capture, describe(operation));
  capture.nodes.push_back({std::move(operation), stream.frontier});
  stream.frontier = {static_cast<int>(capture.nodes.size()) - 1};
}

void record_captured(EventState& event, const StreamState& stream) {
  require_unspoilt(*stream.capture, "record");
  event.point = {};
  event.capture = stream.capture;
  event.frontier = stream.frontier;
}

void wait_captured(StreamState& stream, const EventState& event) {
  if (event.capture->ended) {
    throw DeviceError(ErrorKind::capture_invalid,
                      "wait: event " + std::to_string(event.number) +
                          " was recorded in a capture that has ended; it has no meaning outside");
  }
  require_unspoilt(*event.capture, "wait");
  if (stream.capture && stream.capture != event.capture) {
    refuse(*stream.capture, "wait for an event of the capture of " +
                                name_of(*event.capture->origin) + " in another capture, that of " +
                                name_of(*stream.capture->origin));
  }
  stream.capture = event.capture;
  std::vector<int> both;
  std::set_union(stream.frontier.begin(), stream.frontier.end(), event.frontier.begin(),
                 event.frontier.end(), std::back_inserter(both));
  stream.frontier = std::move(both);
}

void spoil(Capture& capture, const std::string& what) {
  if (capture.offence.empty()) capture.offence = what;
}

void refuse(Capture& capture, const std::string& what) {
  spoil(capture, what);
  throw DeviceError(ErrorKind::capture_unsupported, what);
}

std::shared_ptr<const GraphData> finish(Capture& capture) {
  require_unspoilt(capture, "end_capture");
  if (const int node = unjoined_node(capture); node >= 0) {
    throw DeviceError(ErrorKind::capture_invalid,
                      "end_capture: " + name_of(*capture.origin) + " does not wait for " +
                          describe(capture.nodes[node].operation) + ", node " +
                          std::to_string(node) + ", of a stream that joined the capture");
  }
  GraphData graph{std::move(capture.nodes), {}, {}};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KeptWords kept = kept_by(graph.nodes[i].operation);
    for (const auto word : kept.addresses) graph.addresses.emplace(word, static_cast<int>(i));
    for (const auto word : kept.guesses) graph.guesses.emplace(word, static_cast<int>(i));
  }
  return std::make_shared<const GraphData>(std::move(graph));
}

}  // namespace plumb::device::sim
