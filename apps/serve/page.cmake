# The server's page, whose files are arrays in the program.
file(GLOB chat_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/apps/web/chat/*.*)
set(embedded_chat ${CMAKE_CURRENT_BINARY_DIR}/embedded_chat.cc)
add_custom_command(OUTPUT ${embedded_chat}
  COMMAND ${CMAKE_COMMAND} -DOUT=${embedded_chat} -DSPACE=fovea::serve -DFUNCTION=page_files -DHEADER=serve/page.h "-DFILES=${chat_files}"
    -P ${CMAKE_CURRENT_SOURCE_DIR}/inspector/embed.cmake
  DEPENDS ${chat_files} ${CMAKE_CURRENT_SOURCE_DIR}/inspector/embed.cmake VERBATIM)
target_sources(fovea_serve PRIVATE ${embedded_chat})
