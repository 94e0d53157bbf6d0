# SPDX-License-Identifier: Apache-2.0
# Sets PLUMB_HDF5 and PLUMB_HDF5_HEADERS. find_package is not used, because its result includes the
# libraries of HDF5's network drivers, which plumb does not need. The shared library loads them too:
# thirty libraries and two thirds of plumb's start time. So the static library is used if it is
# there.
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
