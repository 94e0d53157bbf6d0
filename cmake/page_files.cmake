# SPDX-License-Identifier: Apache-2.0
# Compiles the files of the HTML report into the binary:
# cmake -DOUTPUT=... -DTEMPLATE=... -DSTYLE=... -DSCRIPTS=a;b -P page_files.cmake
set(texts "")
# Arguments: name, then the files whose joined text it gets.
function(plumb_append_text name)
  set(text "")
  foreach(file ${ARGN})
    file(READ ${file} part)
    string(APPEND text "${part}")
  endforeach()
  if(text MATCHES "[^\t\n -~]" OR text MATCHES "[)]page\"")
    message(FATAL_ERROR "${ARGN}: only ASCII can stand in the page's own files, and no )page\"")
  endif()
  set(texts "${texts}inline constexpr std::string_view ${name} = R\"page(${text})page\"sv;\n" PARENT_SCOPE)
endfunction()
plumb_append_text(kPageTemplate ${TEMPLATE})
plumb_append_text(kPageStyle ${STYLE})
plumb_append_text(kPageScript ${SCRIPTS})
file(WRITE ${OUTPUT} "// Made from tools/html by cmake/page_files.cmake.
#pragma once
#include <string_view>
namespace plumb::tools {
using namespace std::string_view_literals;
${texts}}  // namespace plumb::tools
")
