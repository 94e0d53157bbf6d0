# SPDX-License-Identifier: Apache-2.0
#
# What a stranger does: installs plumb, builds examples/plugin against the package, runs both
# plug-ins. The right kernels pass; the wrong ones fail, each with its op and its rows. The installed plumb has its
# goldens beside it, which no command changes.
#   cmake -DBUILD=... -DSOURCE=... -DWORK=... -DGENERATOR=... -DCOMPILER=... -P plugin_example.cmake
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

# run(CODE WORDS...): output in `text`; fails unless the exit code is CODE.
function(run code)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE got OUTPUT_VARIABLE out
                  ERROR_VARIABLE err)
  if(NOT got EQUAL code)
    message(FATAL_ERROR "exit code ${got}, not ${code}: ${ARGN}\n${out}\n${err}")
  endif()
  set(text "${out}" PARENT_SCOPE)
  set(complaint "${err}" PARENT_SCOPE)
endfunction()

function(expect words)
  string(FIND "${text}" "${words}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "\"${words}\" is not in\n${text}")
  endif()
endfunction()

run(0 ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(0 ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CUDA_COMPILER=)
run(0 ${CMAKE_COMMAND} --build ${WORK}/build)

set(plumb ${WORK}/prefix/bin/plumb run --op mtp_input_rms_norm --op top_k_per_row_decode
    --op rms_norm --tier smoke --json report.json)
run(0 ${plumb} --plugin build/right_kernels.so)
expect(" 0 failed, 0 untrusted")
expect("right_example lacks the op")

run(1 ${plumb} --plugin build/wrong_kernels.so --platform sim-gfx942)
expect("FAIL  mtp_input_rms_norm/v4_pro/eager   sim-gfx942")
expect("elements beyond their bound in 2 of 3 rows (rows 1-2)")
expect("indices: 4 of 4 rows (rows 0-3) wrong")
expect("every wrong row is right for a window one column shorter: off by one length")
expect("--plugin build/wrong_kernels.so")

# The goldens, and the commit, of the installed one.
set(plumb ${WORK}/prefix/bin/plumb)
run(0 ${plumb} golden check --platform sim-sm90 --op rms_norm)
run(0 ${plumb} run --case rms_norm/hidden_1/eager --platform sim-sm90 --json report.json)
expect("1 cases with the same bits, 0 drifted, 0 failed")
file(READ ${WORK}/report.json report)
string(JSON commit GET "${report}" run commit)
execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE)
if(head AND NOT commit MATCHES "^${head}[+]?$")
  message(FATAL_ERROR "commit ${commit}, not ${head}")
endif()
foreach(command "golden;regen;--platform;sim-sm90;--op;rms_norm" "golden;approve;x.h5;--results;x")
  run(2 ${plumb} ${command} --reason "a test")
  if(NOT complaint MATCHES "^plumb: [^\n]*/prefix/share/plumb/golden: the goldens of an installed plumb stay[^\n]*\n$")
    message(FATAL_ERROR "not refused in one line:\n${complaint}")
  endif()
endforeach()
run(0 ${plumb} golden regen --platform sim-sm90 --op rms_norm --dry-run)
run(0 ${plumb} golden regen --platform sim-sm90 --case rms_norm/hidden_1 --goldens own --reason "a test")
# Without them a run compares nothing.
file(RENAME ${WORK}/prefix/share/plumb/golden ${WORK}/prefix/share/plumb/moved)
run(2 ${plumb} golden check --platform sim-sm90 --op rms_norm)
file(REMOVE_RECURSE ${WORK})
