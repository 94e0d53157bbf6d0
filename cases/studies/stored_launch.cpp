// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/stored_launch.h"

#include "cases/drivers/session.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

StoredLaunch launch_once(const Case& which, const RunOptions& options, Fill fill) {
  const auto properties = options.open(options.platform, {})->properties();
  StoredLaunch stored;
  stored.problem = which.op->make_problem(which.row, properties);
  stored.step = {
      .seed = mix(seed_of(which.id()), 100), .live = stored.problem->capacity(), .fill = fill};
  CaseResult ignored;
  const Point point{.fill = fill};
  Session session(*stored.problem, which, point, options, ignored);
  Buffers buffers = session.make_buffers();
  session.set_inputs(stored.step, buffers);
  session.poison(buffers, point.poison);
  session.launch(buffers);
  stored.declared = session.declared();
  stored.tensors = session.read_back(buffers, point.poison, stored.damage);
  return stored;
}

bool same_inputs(const TensorSet& a, const TensorSet& b) {
  for (const HostTensor& tensor : a.all()) {
    if (tensor.spec().role != Role::input) continue;
    const HostTensor* other = b.contains(tensor.spec().name) ? &b.at(tensor.spec().name) : nullptr;
    if (other == nullptr || tensor.bytes() != other->bytes()) return false;
  }
  return true;
}

}  // namespace plumb::cases
