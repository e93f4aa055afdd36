# Writes FILES as arrays into the C++ source OUT, which defines FUNCTION in SPACE, declared in HEADER: the files by name.
set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "const unsigned char kFile${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", {reinterpret_cast<const char*>(kFile${number}), sizeof kFile${number}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "#include \"${HEADER}\"\n\nnamespace ${SPACE} {\nnamespace {\n${arrays}}  // namespace\n
const std::map<std::string, std::string_view>& ${FUNCTION}() {
  static const std::map<std::string, std::string_view> files = {\n${rows}  };\n  return files;\n}\n\n}  // namespace ${SPACE}\n")
