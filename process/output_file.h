// SPDX-License-Identifier: Apache-2.0
//
// A file without a name that a child writes to: the child never blocks on it, as it would on a full
// pipe.
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
  std::string text() const;  // everything that was written

 private:
  int descriptor_ = -1;
};

}  // namespace plumb::process
