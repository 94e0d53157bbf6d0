// SPDX-License-Identifier: Apache-2.0
//
// An unnamed file for the output of a child. Unlike a full pipe, it never blocks the child.
#pragma once

#include <string>

namespace plumb::process {

class OutputFile {
 public:
  OutputFile();  // throws std::system_error
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  int descriptor() const { return descriptor_; }
  std::string text() const;  // all text that was written

 private:
  int descriptor_ = -1;
};

}  // namespace plumb::process
