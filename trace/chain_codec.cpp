// SPDX-License-Identifier: Apache-2.0
#include "trace/call_place_fields.h"
#include "trace/chain_messages.h"

namespace plumb::trace {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BrokenChain, writer, reader, wrote, read, bytes, elements,
                                   of_elements, first)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChainReport, rank, step, certain, checked, broken, found)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChainRequest, path)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChainAnswer, refused, report)

}  // namespace plumb::trace

PLUMB_MESSAGE(plumb::trace::ChainRequest)
PLUMB_MESSAGE(plumb::trace::ChainAnswer)
