// SPDX-License-Identifier: Apache-2.0
//
// The streams that HDF5's archive prints to. Its code is compiled for a program, where stdout and
// stderr are at a fixed distance; in a module they are not. --wrap gives that code these pointers.
#include <cstdio>

extern "C" {
extern FILE* __real_stdout;
extern FILE* __real_stderr;
__attribute__((visibility("hidden"))) FILE* __wrap_stdout = nullptr;
__attribute__((visibility("hidden"))) FILE* __wrap_stderr = nullptr;

__attribute__((constructor)) static void find_streams() {
  __wrap_stdout = __real_stdout;
  __wrap_stderr = __real_stderr;
}
}
