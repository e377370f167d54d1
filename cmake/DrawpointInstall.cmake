# Installs the rooms, their public headers and a package file, for find_package(drawpoint). Included after the rooms.
include(CMakePackageConfigHelpers)

get_property(DRAWPOINT_ROOMS GLOBAL PROPERTY DRAWPOINT_ROOMS)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/drawpoint)

if(DRAWPOINT_ROOMS)
  install(TARGETS ${DRAWPOINT_ROOMS} EXPORT drawpointTargets FILE_SET HEADERS)
  install(EXPORT drawpointTargets NAMESPACE drawpoint:: DESTINATION ${package_folder})
  file(GLOB doors CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/drawpoint/*.hpp)   # which include the rooms' headers
  install(FILES ${doors} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/drawpoint)
  install(FILES ${PROJECT_SOURCE_DIR}/bench/suite/drawpoint_suite.py DESTINATION ${CMAKE_INSTALL_DATADIR}/drawpoint/python)
  if(TARGET drawpoint_serve)
    install(TARGETS drawpoint drawpoint_serve)
    # Manual pages and completions are what the program prints of its own options.
    set(manual ${PROJECT_BINARY_DIR}/manual)
    add_custom_command(OUTPUT ${manual}/drawpoint.1 ${manual}/drawpoint.bash ${manual}/_drawpoint ${manual}/drawpoint.fish
      COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}   # with pages of commands that are no more
      COMMAND drawpoint man --folder ${manual}
      COMMAND drawpoint completion bash > ${manual}/drawpoint.bash
      COMMAND drawpoint completion zsh > ${manual}/_drawpoint
      COMMAND drawpoint completion fish > ${manual}/drawpoint.fish
      DEPENDS drawpoint VERBATIM)
    add_custom_target(drawpoint_manual ALL DEPENDS ${manual}/drawpoint.1)
    install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
    install(FILES ${manual}/drawpoint.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME drawpoint)
    install(FILES ${manual}/_drawpoint DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${manual}/drawpoint.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
    install(FILES ${PROJECT_SOURCE_DIR}/instrumentation/trace/drawpoint.sql
      DESTINATION ${CMAKE_INSTALL_DATADIR}/drawpoint)
  endif()
  add_custom_target(installed DEPENDS ${DRAWPOINT_ROOMS} $<TARGET_NAME_IF_EXISTS:drawpoint>
    $<TARGET_NAME_IF_EXISTS:drawpoint_serve> $<TARGET_NAME_IF_EXISTS:drawpoint_manual>)

  # Static libraries pass on everything they link, so the package looks for all of it.
  set(DRAWPOINT_DEPENDENCIES Threads ZLIB fmt nlohmann_json simdjson JPEG PkgConfig)
  if(DRAWPOINT_TBB)
    list(APPEND DRAWPOINT_DEPENDENCIES TBB)
  endif()
  configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/drawpointConfig.cmake.in ${PROJECT_BINARY_DIR}/drawpointConfig.cmake
                                INSTALL_DESTINATION ${package_folder})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/drawpointConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/drawpointConfig.cmake ${PROJECT_BINARY_DIR}/drawpointConfigVersion.cmake
                ${CMAKE_CURRENT_LIST_DIR}/DrawpointTorch.cmake
          DESTINATION ${package_folder})
endif()
