# Configures, builds and runs one consumer, from nothing. See CMakeLists.txt for what is handed in.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE words ERROR_VARIABLE words)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${words}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
set(options)
if(KIND STREQUAL "package")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
  list(APPEND options "-DCMAKE_PREFIX_PATH=${WORK}/installed" "-DTorch_DIR=${TORCH_DIR}")
endif()
# Unoptimised: what is tested is that it builds.
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${KIND} -B ${WORK}/build -G Ninja "-DCMAKE_MAKE_PROGRAM=${NINJA}" -DCMAKE_BUILD_TYPE=Debug
    "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=${FLAGS}" -DCMAKE_CXX_FLAGS_DEBUG=-O0
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" "-DDRAWPOINT_TBB=${TBB}" ${options})
run(${CMAKE_COMMAND} --build ${WORK}/build --target consumer --parallel 2)
run(${WORK}/build/consumer)
