#include "base/unnamed_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace fovea {

int unnamed_file() {
  std::error_code none;
  const std::string folder = std::filesystem::temp_directory_path(none).string();
  std::string path = folder + "/fovea-XXXXXX";
  const int file = folder.empty() ? -1 : mkostemp(path.data(), O_CLOEXEC);
  if (file < 0)
    fail(ErrorKind::Failed,
         "{}: no temporary file can be created ({}); expected a writable directory, as named by "
         "TMPDIR",
         folder.empty() ? "TMPDIR" : folder, std::strerror(folder.empty() ? ENOENT : errno));
  ::unlink(path.c_str());
  return file;
}

}  // namespace fovea
