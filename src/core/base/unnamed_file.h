#pragma once

namespace fovea {

// Returns the descriptor of a new temporary file without a name, in the directory that TMPDIR
// names or else in /tmp. Throws Failed, naming the directory, if there can be none.
int unnamed_file();

}  // namespace fovea
