# The inspector's page, whose files are arrays in the program.
set(web ${CMAKE_SOURCE_DIR}/apps/web)
file(GLOB page_files CONFIGURE_DEPENDS ${web}/*.html ${web}/*.css ${web}/*.js)
set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded_page.cc)
set(embed ${CMAKE_CURRENT_SOURCE_DIR}/inspector/embed.cmake)
add_custom_command(OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -DOUT=${embedded} -DSPACE=fovea::inspector -DHEADER=inspector/page.h "-DFILES=${page_files}" -P ${embed}
  DEPENDS ${page_files} ${embed} VERBATIM)
target_sources(fovea_inspector PRIVATE ${embedded})
