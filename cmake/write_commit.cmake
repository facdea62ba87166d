set(commit unknown)
if(GIT)
  execute_process(COMMAND ${GIT} rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE rc)
  if(rc EQUAL 0 AND found)
    set(commit ${found})
  endif()
endif()
file(WRITE ${HEADER} "#pragma once\n#define TAKT_COMMIT \"${commit}\"\n")
