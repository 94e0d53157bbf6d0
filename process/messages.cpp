// SPDX-License-Identifier: Apache-2.0
#include "process/messages.h"

#include "process/codec_fields.h"

namespace plumb::process {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hello, program, protocol, role)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ready, protocol, process)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkerRequest, task, name, body)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkerAnswer, task, name, process, error, left_a_process, body)

Bytes cbor_of(const nlohmann::json& value) { return nlohmann::json::to_cbor(value); }
nlohmann::json json_of(const Bytes& cbor) { return nlohmann::json::from_cbor(cbor); }

}  // namespace plumb::process

PLUMB_MESSAGE(plumb::process::Hello)
PLUMB_MESSAGE(plumb::process::Ready)
PLUMB_MESSAGE(plumb::process::WorkerRequest)
PLUMB_MESSAGE(plumb::process::WorkerAnswer)
