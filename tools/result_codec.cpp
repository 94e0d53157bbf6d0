// SPDX-License-Identifier: Apache-2.0
#include "tools/result_codec.h"

#include "tools/result_fields.h"

PLUMB_MESSAGE(plumb::tools::CaseRequest)
PLUMB_MESSAGE(plumb::tools::CaseAnswer)
PLUMB_MESSAGE(plumb::tools::WatchRequest)
PLUMB_MESSAGE(plumb::tools::Finished)
PLUMB_MESSAGE(plumb::cases::DiagnosedWatch)
