#pragma once

// Which files of a repository fovea reads.

#include "fovea/model/hub.h"

namespace fovea::model {

struct Selection {
  std::vector<HubFile> files;  // the weights last
  std::string model;           // the .gguf file, or its first part; empty = the folder
  std::string choice;
};

// Selects from the files of a repository, at the Hub or in the cache. Throws BadFile if something
// that `name` asks for is not there, and Unsupported if there are no weights that fovea reads.
Selection select_files(const std::vector<HubFile>& files, const HubName& name,
                       const HubSettings& settings);

// Returns the quantisation in the name of a .gguf file, in upper case, such as "Q4_K_M"; empty if
// the name has none.
std::string quantisation_in(const std::string& file);

}  // namespace fovea::model
