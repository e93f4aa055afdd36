#pragma once

// The hashes by which the Hub identifies the contents of files.

#include <functional>
#include <memory>
#include <string>

#include "fovea/model/hub.h"
#include "hub/transport.h"

namespace fovea::model {

// SHA-256 if file.hash has its 64 digits; otherwise the SHA-1 of a blob of git, whose size precedes
// its bytes.
std::unique_ptr<Digest> digest_of(const HubFile& file);

// Adds the bytes of a file. `tick` is called several times a second; false ends the reading.
void add_file(Digest& digest, const std::string& path, const std::function<bool()>& tick);

}  // namespace fovea::model
