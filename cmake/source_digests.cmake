# SPDX-License-Identifier: Apache-2.0
# A digest of each op's kernel source with all of plumb's own headers that it includes:
# cmake -DOUTPUT=... -DROOT=... -DSOURCES=a;b -P source_digests.cmake. Writes OUTPUT.d as well.

cmake_minimum_required(VERSION 3.25)

# Adds `file` and the files that it includes to ${found}.
function(follow file)
  get_property(found GLOBAL PROPERTY found)
  if(file IN_LIST found)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY found ${file})
  file(STRINGS ${file} includes REGEX "^#include \"")
  get_filename_component(folder ${file} DIRECTORY)
  foreach(line ${includes})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" name "${line}")
    foreach(place ${ROOT} ${folder} ${ROOT}/device/sim)
      if(EXISTS ${place}/${name})
        follow(${place}/${name})
        break()
      endif()
    endforeach()
  endforeach()
endfunction()

set(entries "")
set(dependencies "")
foreach(source ${SOURCES})
  set_property(GLOBAL PROPERTY found "")
  follow(${source})
  get_property(found GLOBAL PROPERTY found)
  list(SORT found)
  set(digests "")
  foreach(file ${found})
    file(SHA256 ${file} digest)
    string(APPEND digests "${digest}\n")
  endforeach()
  string(SHA256 digest "${digests}")
  get_filename_component(op ${source} NAME_WE)
  string(APPEND entries "  {\"${op}\", \"${digest}\"},\n")
  list(APPEND dependencies ${found})
endforeach()
list(REMOVE_DUPLICATES dependencies)
string(REPLACE ";" " \\\n  " dependencies "${dependencies}")
file(WRITE ${OUTPUT}.d "${OUTPUT}: ${dependencies}\n")
file(WRITE ${OUTPUT} "// Made from device/kernels by cmake/source_digests.cmake.
#pragma once
#include <string_view>
namespace plumb::golden {
struct SourceDigest { std::string_view op, digest; };
inline constexpr SourceDigest kSourceDigests[] = {
${entries}};
}  // namespace plumb::golden
")
