// SPDX-License-Identifier: Apache-2.0
//
// A finished case, or what a watch of a decode step found, as bytes, for the way from a worker
// process to the one that reports.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/step_diagnosis.h"
#include "tools/report.h"

namespace plumb::tools {

std::vector<std::uint8_t> to_bytes(const Finished& finished);
// In place of a finished case: a row that cannot be used, found when its tensors were made.
std::vector<std::uint8_t> to_bytes(const cases::BadRow& error);
// Throws cases::BadRow if that was sent, std::runtime_error for bytes that are neither.
Finished finished_from(const std::vector<std::uint8_t>& bytes);

std::vector<std::uint8_t> to_bytes(const cases::DiagnosedWatch& watch);
// Throws std::runtime_error for bytes that are none.
cases::DiagnosedWatch watch_from(const std::vector<std::uint8_t>& bytes);

}  // namespace plumb::tools
