# After `cmake --install`, find_package(fovea) provides the targets fovea::fovea, the static library for C++ and its
# dependencies, and fovea::c, the shared library for C. pkg-config's module fovea is the latter. The component `program` is
# what the portable archive has.
include(CMakePackageConfigHelpers)

install(TARGETS fovea EXPORT fovea_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fovea_shared EXPORT fovea_c_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(TARGETS fovea_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Written when the program is linked: see cmake/write_manual.cmake.
set(manual ${CMAKE_BINARY_DIR}/manual)
install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
install(FILES ${manual}/bash/fovea DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
install(FILES ${manual}/zsh/_fovea DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
install(FILES ${manual}/fish/fovea.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
foreach(module fovea_mpi fovea_libav fovea_hub fovea_languages)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fovea)
  endif()
endforeach()
if(FOVEA_CUDA)
  install(FILES ${CMAKE_BINARY_DIR}/fovea_cuda.fatbin DESTINATION ${CMAKE_INSTALL_LIBDIR}/fovea)
endif()
install(FILES deploy/systemd/fovea.service DESTINATION lib/systemd/system)
install(FILES deploy/systemd/serve.yaml DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/fovea)
unset(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME)
install(DIRECTORY include/fovea DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fovea)
install(EXPORT fovea_targets FILE foveaTargets.cmake NAMESPACE fovea:: DESTINATION ${package})
install(EXPORT fovea_c_targets FILE foveaCTargets.cmake NAMESPACE fovea:: DESTINATION ${package})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/foveaConfig.cmake.in ${CMAKE_BINARY_DIR}/foveaConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/foveaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/foveaConfig.cmake ${CMAKE_BINARY_DIR}/foveaConfigVersion.cmake DESTINATION ${package})
# Relative to its own directory, so that the installed tree can be moved.
file(RELATIVE_PATH path_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" path_to_prefix "${path_to_prefix}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/fovea.pc.in ${CMAKE_BINARY_DIR}/fovea.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/fovea.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
