# SPDX-License-Identifier: Apache-2.0
# Writes a mutant: a file with one piece of its text replaced. The piece must occur exactly once.
# Otherwise the build fails, so that a mutant is updated together with its kernel.
#   cmake -DNAME=... -DINPUT=... -DOUTPUT=... -DFROM_FILE=... -DTO_FILE=... -P mutate.cmake
file(READ ${INPUT} text)
file(READ ${FROM_FILE} from)
file(READ ${TO_FILE} to)
string(FIND "${text}" "${from}" first)
string(FIND "${text}" "${from}" last REVERSE)
if(first EQUAL -1)
  message(FATAL_ERROR "mutant ${NAME}: its text is not in ${INPUT}:\n${from}")
endif()
if(NOT first EQUAL last)
  message(FATAL_ERROR "mutant ${NAME}: its text is in ${INPUT} more than once:\n${from}")
endif()
string(REPLACE "${from}" "${to}" text "${text}")
file(WRITE ${OUTPUT} "${text}")
