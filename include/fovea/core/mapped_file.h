#pragma once

namespace fovea {

// Returns the path of the file that fovea has mapped at `address`, or null if it has mapped no file
// there. Searches at most 256 mapped files. The path is valid as long as the file is mapped.
//
// Weights and texts are read from mapped files; if another process truncates such a file, reading
// it raises SIGBUS. This function is for a handler of that signal, so it neither locks nor
// allocates.
const char* mapped_file_at(const void* address) noexcept;

}  // namespace fovea
