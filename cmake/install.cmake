# What `cmake --install` puts where: the command, both libraries, the headers, and what CMake and pkg-config need to find
# them. Everything is relative to the prefix, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(nib_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nib)

install(TARGETS nib_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/nib DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Two sets: a program that links the shared library needs no PCRE2.
install(TARGETS nib_shared EXPORT nibTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS nib_static EXPORT nibStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT nibTargets NAMESPACE nib:: DESTINATION ${nib_config_dir})
install(EXPORT nibStaticTargets NAMESPACE nib:: DESTINATION ${nib_config_dir})

configure_package_config_file(cmake/nibConfig.cmake.in ${CMAKE_BINARY_DIR}/nibConfig.cmake
  INSTALL_DESTINATION ${nib_config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/nibConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/nibConfig.cmake ${CMAKE_BINARY_DIR}/nibConfigVersion.cmake
  DESTINATION ${nib_config_dir})

file(RELATIVE_PATH nib_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" nib_pc_prefix "${nib_pc_prefix}")
configure_file(cmake/nib.pc.in ${CMAKE_BINARY_DIR}/nib.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/nib.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
