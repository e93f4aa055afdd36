#include "inspector/course.h"

#include <filesystem>
#include <fstream>

#include "fovea/core/error.h"

namespace fovea::inspector {

void write_course_model(const std::string& folder) {
  std::error_code none;
  std::filesystem::create_directories(folder, none);
  for (const auto& [name, bytes] : course_model_files()) {
    std::ofstream file(std::filesystem::path(folder) / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file)
      throw Error(ErrorKind::Failed,
                  folder + ": cannot be written; expected a writable directory with free space");
  }
}

}  // namespace fovea::inspector
