# Makes the API reference of the project in the working directory, below OUTPUT. A warning of Doxygen's is an error.
file(READ docs/Doxyfile text)
file(WRITE ${OUTPUT}/Doxyfile "${text}\nOUTPUT_DIRECTORY = ${OUTPUT}\nGENERATE_HTML = YES\n")
execute_process(COMMAND ${DOXYGEN} ${OUTPUT}/Doxyfile RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the API reference has warnings")
endif()
