# SPDX-License-Identifier: Apache-2.0
#
# plumb_install_files(prefix component): what an installed plumb reads from <prefix>/share/plumb, which the program finds
# beside its own folder (tools/run/installed_files.h), with the licences of plumb and of the libraries that are linked into it.
function(plumb_install_files prefix component)
  set(folder ${prefix}share/plumb)
  install(DIRECTORY golden/ DESTINATION ${folder}/golden COMPONENT ${component}
          FILES_MATCHING PATTERN "*.h5" PATTERN manifest.txt)
  install(FILES LICENSE DESTINATION ${folder}/licences RENAME plumb.txt COMPONENT ${component})
  # Of a distribution's packages, where they are from one. Boost asks for none beside a program.
  foreach(package libhdf5-dev libaec-dev zlib1g-dev libxxhash-dev libfmt-dev libeigen3-dev libcli11-dev
                  libtomlplusplus-dev nlohmann-json3-dev)
    set(licence /usr/share/doc/${package}/copyright)
    if(EXISTS ${licence})
      file(REAL_PATH ${licence} licence)
      install(FILES ${licence} DESTINATION ${folder}/licences RENAME ${package}.txt COMPONENT ${component})
    endif()
  endforeach()
  install(CODE "include(\"${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake\")
    plumb_write_commit(\"${PROJECT_SOURCE_DIR}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/commit.txt\")"
          COMPONENT ${component})
endfunction()
