# SPDX-License-Identifier: Apache-2.0
#
# plumb_write_commit(source file): the commit that is checked out in `source`, with "+" behind it if tracked files other
# than goldens differ from it, as golden::commit_of says it. Writes nothing if `source` is no checkout: sources of an
# archive may lie inside another repository.
function(plumb_write_commit source file)
  find_program(git git)
  if(NOT git)
    return()
  endif()
  execute_process(COMMAND ${git} -C ${source} rev-parse --show-prefix HEAD OUTPUT_VARIABLE said RESULT_VARIABLE code
                  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  # The first line is where `source` lies in the checkout: empty at its top.
  if(NOT code EQUAL 0 OR NOT said MATCHES "^\n([0-9a-f]+)$")
    return()
  endif()
  set(commit ${CMAKE_MATCH_1})
  execute_process(COMMAND ${git} -C ${source} status --porcelain --untracked-files=no -- :/ ":(exclude,top)golden/*.txt"
                  ":(exclude,top)golden/**/*.h5" OUTPUT_VARIABLE changes RESULT_VARIABLE code ERROR_QUIET)
  if(NOT code EQUAL 0 OR NOT changes STREQUAL "")
    string(APPEND commit "+")
  endif()
  file(WRITE ${file} "${commit}\n")
endfunction()
