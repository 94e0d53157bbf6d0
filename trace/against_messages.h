// SPDX-License-Identifier: Apache-2.0
//
// Messages between plumb judge --against and its workers.
#pragma once

#include <string>
#include <vector>

#include "process/codec.h"
#include "trace/call_outline.h"
#include "trace/call_pair.h"
#include "trace/match_calls.h"

namespace plumb::trace {

// Roles of these workers.
inline constexpr const char* kOutlineRole = "trace outlines";
inline constexpr const char* kRowsRole = "trace rows";
inline constexpr const char* kPairRole = "trace pairs";

struct OutlineRequest {
  std::string path;  // path of a step's file
};
struct OutlineAnswer {
  std::string refused;  // why the file cannot be used: one line
  StepOutline outline;
};

struct RowsRequest {
  std::string path;
  std::vector<std::size_t> calls;
};
struct RowsAnswer {
  std::string refused;
  std::vector<RowDigests> rows;  // for each call
};

struct PairRequest {
  std::string path_a, path_b;
  std::size_t a = 0, b = 0;           // indices of the calls
  std::vector<cases::RowPair> pairs;  // row pairs; empty: the whole calls
};
struct PairAnswer {
  std::string refused;
  PairReport report;
};

// The worker's side. Each serves requests until the parent closes the channel, and returns the exit
// code.
int serve_outlines();
int serve_rows();
int serve_pairs();

}  // namespace plumb::trace
