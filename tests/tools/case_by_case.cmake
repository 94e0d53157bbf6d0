# SPDX-License-Identifier: Apache-2.0
#
# Checks on one op that the tests of PLUMB_CTEST_CASES are the cases of plumb run, and that they pass.
#   cmake -DPLUMB=... -DTESTS=... -P case_by_case.cmake
set(op mtp_shared_head_rms_norm)
execute_process(COMMAND ${PLUMB} list --op ${op} --tier default OUTPUT_VARIABLE listed
                RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "plumb list ends with ${failed}")
endif()
string(REGEX MATCHALL "${op}/[a-z0-9_]+/[a-z0-9_]+" listed "${listed}")
execute_process(COMMAND ${TESTS} --gtest_filter=sim_sm90.${op}/* OUTPUT_VARIABLE printed
                RESULT_VARIABLE failed)
string(REGEX MATCHALL "sim_sm90.${op}/[a-z0-9_]+/[a-z0-9_]+ \\(" passed "${printed}")
list(TRANSFORM passed REPLACE "sim_sm90.([^ ]*) \\(" "\\1")
list(SORT listed)
list(SORT passed)
if(failed OR NOT listed OR NOT listed STREQUAL passed)
  message(FATAL_ERROR "ends with ${failed}\nlisted: ${listed}\npassed: ${passed}\n${printed}")
endif()
