#pragma once

namespace fovea {

// The path of the file that fovea has mapped at this address; null if there is none. Weights and
// texts are read where they lie in a mapped file, and a page that the file has lost, because
// somebody made it shorter, is a SIGBUS: for a handler of that signal, so it neither locks nor
// allocates.
const char* mapped_file_at(const void* address) noexcept;

}  // namespace fovea
