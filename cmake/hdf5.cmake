# SPDX-License-Identifier: Apache-2.0
# PLUMB_HDF5 and PLUMB_HDF5_HEADERS. Not by find_package: what it reports includes all that the library's
# network drivers need, which nobody here uses. The shared library loads that too, thirty libraries
# and two thirds of the time that plumb takes to start, so the static one is taken where it is.
find_path(PLUMB_HDF5_HEADERS hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
find_library(PLUMB_HDF5_ARCHIVE NAMES libhdf5_serial.a libhdf5.a)
set(PLUMB_HDF5 ${PLUMB_HDF5_ARCHIVE})
foreach(library sz aec z)
  find_library(PLUMB_HDF5_${library} ${library})
  list(APPEND PLUMB_HDF5 ${PLUMB_HDF5_${library}})
endforeach()
if("${PLUMB_HDF5}" MATCHES NOTFOUND)
  find_library(PLUMB_HDF5_SHARED NAMES hdf5_serial hdf5 REQUIRED)
  set(PLUMB_HDF5 ${PLUMB_HDF5_SHARED})
endif()
