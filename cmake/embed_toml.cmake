# SPDX-License-Identifier: Apache-2.0
# Embeds TOML files in the binary. Generates generated/HEADER with an array NAME of their names and
# texts, and sets HEADER_VARIABLE to its path. A target that includes the header lists that path as
# a source.
function(plumb_embed_toml header_variable header name)
  set(path ${PROJECT_BINARY_DIR}/generated/${header})
  set(files ${ARGN})
  list(TRANSFORM files PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_custom_command(
    OUTPUT ${path}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${path} -DNAME=${name} "-DFILES=${files}"
            -P ${PROJECT_SOURCE_DIR}/cmake/case_files.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/case_files.cmake
    VERBATIM)
  set(${header_variable} ${path} PARENT_SCOPE)
endfunction()
