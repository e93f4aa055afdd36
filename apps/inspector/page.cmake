# The inspector's page, whose files are arrays in the program.
set(web ${CMAKE_SOURCE_DIR}/apps/web)
file(GLOB page_files CONFIGURE_DEPENDS ${web}/*.html ${web}/*.css ${web}/*.js ${CMAKE_SOURCE_DIR}/docs/course/*.md)
file(GLOB course_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/inspector/course_model/*)
set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded_page.cc)
set(embed ${CMAKE_CURRENT_SOURCE_DIR}/inspector/embed.cmake)
add_custom_command(OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -DOUT=${embedded} -DSPACE=fovea::inspector -DFUNCTION=page_files -DHEADER=inspector/page.h "-DFILES=${page_files}" -P ${embed}
  DEPENDS ${page_files} ${embed} VERBATIM)
set(embedded_course ${CMAKE_CURRENT_BINARY_DIR}/embedded_course.cc)
add_custom_command(OUTPUT ${embedded_course}
  COMMAND ${CMAKE_COMMAND} -DOUT=${embedded_course} -DSPACE=fovea::inspector -DFUNCTION=course_model_files -DHEADER=inspector/course.h "-DFILES=${course_files}" -P ${embed}
  DEPENDS ${course_files} ${embed} VERBATIM)
set_source_files_properties(${embedded} ${embedded_course} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # equal names of arrays
target_sources(fovea_inspector PRIVATE ${embedded} ${embedded_course})
