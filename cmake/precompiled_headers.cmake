# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: the headers that most sources of a target include. With
# PLUMB_PRECOMPILED_HEADERS=others they contain none of plumb's own headers, so that a source that
# lacks such an #include does not compile. Paths are relative to the source folder, so that a
# compiler cache can share them between checkouts.
set(standard_headers <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional>
    <span> <string> <string_view> <utility> <vector>)
set(case_headers <fmt/format.h>)
set(report_headers <fmt/format.h> <nlohmann/json.hpp>)
# Half of the text that a source of the tool or of a test has to read.
set(step_headers <chrono> <filesystem> <fstream> <thread>)
if(NOT PLUMB_PRECOMPILED_HEADERS STREQUAL "others")
  list(APPEND case_headers <cases/tables/problem.h>)
  list(APPEND step_headers <decode/schedule/decode_step.h>)
endif()
target_precompile_headers(plumb_reference PRIVATE ${standard_headers} <Eigen/Core>)
target_precompile_headers(plumb_decode PRIVATE ${standard_headers} <fmt/format.h>)
target_precompile_headers(plumb_sim PRIVATE ${standard_headers} <fmt/format.h>)
target_precompile_headers(plumb_judge PRIVATE ${standard_headers} ${case_headers})
target_precompile_headers(plumb_cases PRIVATE ${standard_headers} ${case_headers})
target_precompile_headers(plumb_decode_watch REUSE_FROM plumb_cases)
# Targets of one kind (library or program) share a set of headers if they have the same flags and at
# least the macros of the target that owns the set.
target_precompile_headers(plumb_golden PRIVATE ${standard_headers} ${case_headers} ${report_headers} ${step_headers})
target_precompile_headers(plumb_decode_faults REUSE_FROM plumb_golden)
target_precompile_headers(plumb_tools PRIVATE ${standard_headers} ${case_headers} ${report_headers} ${step_headers})
target_precompile_headers(plumb_bisect REUSE_FROM plumb_tools)
target_precompile_headers(plumb PRIVATE ${standard_headers} ${case_headers} ${report_headers} ${step_headers})
target_precompile_headers(plumb_value_tests PRIVATE ${standard_headers} ${case_headers} ${step_headers} <gtest/gtest.h>)
foreach(tests sim_grid_test plumb_case_tests)
  target_precompile_headers(${tests} REUSE_FROM plumb_value_tests)
endforeach()
if(PLUMB_TESTS STREQUAL "all")
  foreach(tests plumb_tests plumb_op_tests plumb_golden_tests plumb_remote_tests)
    target_precompile_headers(${tests} REUSE_FROM plumb_value_tests)
  endforeach()
  target_precompile_headers(plumb_command_line_tests PRIVATE ${standard_headers} ${report_headers} <gtest/gtest.h>)
  target_precompile_headers(plumb_bisect_tests REUSE_FROM plumb_command_line_tests)
endif()

# One set for all simulator kernels that are compiled with the same flags.
set(kernel_headers ${standard_headers} <concepts> <exception> <limits> <source_location> <tuple>
    <type_traits>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/kernel_headers.cpp CONTENT "")
add_library(plumb_kernel_headers OBJECT ${PROJECT_BINARY_DIR}/generated/kernel_headers.cpp)
target_link_libraries(plumb_kernel_headers PRIVATE plumb_flags)
target_precompile_headers(plumb_kernel_headers PRIVATE ${kernel_headers})
get_property(kernels GLOBAL PROPERTY plumb_simulated_kernels)
foreach(target ${kernels})
  target_precompile_headers(${target} REUSE_FROM plumb_kernel_headers)
endforeach()
if(PLUMB_CHECKED_KERNELS)
  target_precompile_headers(plumb_kernels_sim_checked PRIVATE ${kernel_headers})
endif()
