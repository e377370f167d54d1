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
set(configure ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${KIND} -B ${WORK}/build -G Ninja "-DCMAKE_MAKE_PROGRAM=${NINJA}"
    "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" "-DDRAWPOINT_TBB=${TBB}" ${options})
run(${configure})
# Compiled with the flags of the build that runs this test, so that ccache has the objects.
run(${configure} -DCMAKE_BUILD_TYPE=${TYPE} "-DCMAKE_CXX_FLAGS=${FLAGS}" "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=${TYPE_FLAGS}"
    -DDRAWPOINT_DEVELOPER=ON)
run(${CMAKE_COMMAND} --build ${WORK}/build --target consumer --parallel 2)
run(${WORK}/build/consumer)
if(KIND STREQUAL "package" AND EXISTS ${BUILD}/bin/drawpoint)   # a suite of the user's own, on generated photographs
  run(${CMAKE_COMMAND} --build ${WORK}/build --target bench_my_dataset)
  run(${BUILD}/bin/drawpoint dataset generate --count 3 --out ${WORK}/pictures)
  run(${BUILD}/bin/drawpoint dataset crops --from ${WORK}/pictures --out ${WORK}/photos --per-image 10 --size 160x120)
  run(${WORK}/build/bench_my_dataset --data ${WORK}/photos/train --rounds 2 --turn-ms 0)
endif()
