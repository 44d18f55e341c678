# cmake --install: libdispatch with its headers and packages, the drop-in for cuBLAS, tables (component dispatch), and the
# tools (component tools).
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/gemm)

install(TARGETS dispatch EXPORT gemm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dispatch
        NAMELINK_COMPONENT dispatch)
install(TARGETS dispatch_cublas LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dispatch)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dispatch)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/gemm/configs COMPONENT dispatch
        FILES_MATCHING PATTERN "*.json")

install(EXPORT gemm NAMESPACE gemm:: FILE gemmTargets.cmake DESTINATION ${package_folder} COMPONENT dispatch)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gemmConfig.cmake.in ${PROJECT_BINARY_DIR}/gemmConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gemmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gemmConfig.cmake ${PROJECT_BINARY_DIR}/gemmConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT dispatch)

# Relative to its own place, so that an installation can be moved.
file(RELATIVE_PATH pkgconfig_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/gemm.pc.in ${PROJECT_BINARY_DIR}/gemm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gemm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dispatch)

foreach(tool IN ITEMS gemm-tune gemm-bench gemm-inspect)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  endif()
endforeach()

# The test installs what is built, so the libraries have to be.
if(TARGET install_test)
  add_dependencies(install_test dispatch dispatch_cublas)
endif()
