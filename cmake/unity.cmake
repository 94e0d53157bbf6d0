# SPDX-License-Identifier: Apache-2.0
# Compiles up to PLUMB_UNITY sources of a target in one compiler call, so that they share included
# headers and template instances. CMake's own unity builds name sources by absolute paths, so that a
# compiler cache could not share them between checkouts. Kernels are compiled alone, because each
# set has a namespace of its own. The reference is compiled alone, because verdicts wait for its
# loops and no compiler should inline one file into another. Sources with SKIP_UNITY_BUILD_INCLUSION
# are compiled alone too: those with a codec, because every source that sees its templates compiles
# them again for each struct that it sends.
function(plumb_compile_together target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  get_target_property(binary_folder ${target} BINARY_DIR)
  list(FILTER sources INCLUDE REGEX "^[^$]+[.]cpp$")
  set(together "")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE OUTPUT_VARIABLE path)
    get_source_file_property(alone ${path} TARGET_DIRECTORY ${target} SKIP_UNITY_BUILD_INCLUSION)
    get_source_file_property(definitions ${path} TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
    if(NOT alone AND NOT definitions)
      set_source_files_properties(${path} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      list(APPEND together "#include \"${path}\"\n")
    endif()
  endforeach()
  list(LENGTH together count)
  if(count EQUAL 0)
    return()
  endif()
  math(EXPR last "${count} - 1")
  foreach(first RANGE 0 ${last} ${PLUMB_UNITY})
    list(SUBLIST together ${first} ${PLUMB_UNITY} unit)
    list(JOIN unit "" text)
    set(file ${binary_folder}/${target}_from_${first}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    target_sources(${target} PRIVATE ${file})
  endforeach()
endfunction()

set(compiled_together plumb_process plumb_sim plumb_judge plumb_cases plumb_decode plumb_decode_watch plumb_golden
    plumb_decode_faults plumb_faults plumb_tools plumb_bisect plumb plumb_value_tests plumb_tests plumb_op_tests
    plumb_golden_tests plumb_remote_tests plumb_command_line_tests plumb_bisect_tests plumb_process_tests
    plumb_source_tree_tests)
foreach(target ${compiled_together})
  if(TARGET ${target})
    plumb_compile_together(${target})
  endif()
endforeach()
