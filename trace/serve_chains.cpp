// SPDX-License-Identifier: Apache-2.0
#include "trace/chain_messages.h"
#include "trace/step_worker.h"

namespace plumb::trace {

int serve_chains() {
  return serve_steps<ChainRequest, ChainAnswer>(
      [](const ChainRequest& request, ChainAnswer& answer) {
        const OpenStep open(request.path);
        answer.report = check_chains(open.step, open.bytes);
      });
}

}  // namespace plumb::trace
