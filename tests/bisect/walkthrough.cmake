# SPDX-License-Identifier: Apache-2.0
#
# Runs the commands of docs/bisect.md (its ```sh blocks, unchanged, in one shell that stops at the
# first failure) in an empty folder, with the built plumb on the PATH. Checks that the output
# contains the texts at the end of this file.
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(READ "${PAGE}" page)
# In a CMake list a semicolon would separate elements.
string(REPLACE ";" "\\;" page "${page}")
string(REGEX MATCHALL "```sh\n[^`]*```" blocks "${page}")
set(script "")
foreach(block ${blocks})
  string(REGEX REPLACE "^```sh\n" "" block "${block}")
  string(REGEX REPLACE "```$" "" block "${block}")
  string(APPEND script "${block}")
endforeach()
list(LENGTH blocks count)
if(NOT count EQUAL 6)
  message(FATAL_ERROR "${PAGE} has ${count} blocks of commands: what sets it up, and five")
endif()
file(WRITE "${WORK}/commands" "${script}")
get_filename_component(bin "${PLUMB}" DIRECTORY)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env "PATH=${bin}:$ENV{PATH}" "PLUMB=${SOURCE}" sh -e ${WORK}/commands
  WORKING_DIRECTORY "${WORK}" OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE code)
message("${output}\n${errors}")
if(NOT code EQUAL 0)
  message(FATAL_ERROR "the commands of ${PAGE} ended with ${code}")
endif()
foreach(text "\nred\n" "first bad commit: " "    round in one instruction\n" "reproduce: git checkout "
        "asked because: the bad end has to be bad" "-  const float rounded = (x + large) - large"
        " passed, 0 failed, 0 untrusted")
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the commands of ${PAGE} do not say: ${text}")
  endif()
endforeach()
