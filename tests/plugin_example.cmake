# SPDX-License-Identifier: Apache-2.0
#
# What a stranger does: installs plumb, builds examples/plugin against the package, runs both
# plug-ins. The right kernels pass; the wrong ones fail, each with its op and its rows.
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
expect("elements in rows 1-2 of 3 beyond their bound")
expect("indices: rows 0-3 of 4 wrong")
expect("every wrong row is right for a window one column shorter: off by one length")
expect("--plugin build/wrong_kernels.so")
file(REMOVE_RECURSE ${WORK})
