# SPDX-License-Identifier: Apache-2.0
#
# cmake --install installs the program with its goldens, the headers of its C ABI, and a package for
# find_package(plumb), as the component plumb. The Python package is a component of its own, for wheels.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME plumb)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(plumb_plugin_interface INTERFACE)
set_target_properties(plumb_plugin_interface PROPERTIES EXPORT_NAME plugin)
target_include_directories(plumb_plugin_interface INTERFACE
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(headers ${CMAKE_INSTALL_INCLUDEDIR}/plumb)
install(DIRECTORY include/plumb/ DESTINATION ${headers})
install(FILES ${PROJECT_BINARY_DIR}/generated/plumb_op_list.h DESTINATION ${headers})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/plumb)
install(TARGETS plumb plumb_plugin_interface EXPORT plumbTargets)
install(EXPORT plumbTargets NAMESPACE plumb:: DESTINATION ${package})
configure_package_config_file(cmake/plumbConfig.cmake.in ${PROJECT_BINARY_DIR}/plumbConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/plumbConfig.cmake
              ${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake DESTINATION ${package})

# Beside bin/, where the program looks for it.
cmake_path(GET CMAKE_INSTALL_BINDIR PARENT_PATH prefix)
if(prefix)
  string(APPEND prefix /)
endif()
plumb_install_files("${prefix}" plumb)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
