// Runs a fuzz target on every given file and on every file of the given folders: the main function
// of the tests.

#include <string>
#include <vector>

#include "base/files.h"
#include "fuzz.h"

int main(int count, char** arguments) {
  std::vector<std::string> paths;
  for (const std::string& path : std::vector<std::string>(arguments + 1, arguments + count)) {
    if (!fovea::is_folder(path)) {
      paths.push_back(path);
      continue;
    }
    for (const std::string& name : fovea::list_files(path)) paths.push_back(path + "/" + name);
  }
  for (const std::string& path : paths) {
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);  // so that the input is known after a crash
    const std::string bytes = fovea::read_file(path);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  fovea::require(!paths.empty(), "there are inputs to replay");
  return 0;
}
