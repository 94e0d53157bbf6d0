# SPDX-License-Identifier: Apache-2.0
# Compiles case files into the binary: cmake -DOUTPUT=... -DNAME=kCaseFiles -DFILES=a;b -P case_files.cmake
set(entries "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "  {\"${name}\", R\"toml(${text})toml\"sv},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made from case files by cmake/case_files.cmake.
#pragma once
#include <string_view>
namespace plumb::cases {
// A literal of a known length: what counts the characters of all files in a constant is more than
// clang evaluates.
using namespace std::string_view_literals;
struct CaseFileText { std::string_view name, text; };
inline constexpr CaseFileText ${NAME}[] = {
${entries}};
}  // namespace plumb::cases
")
