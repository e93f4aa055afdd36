#pragma once

// What classify, embed and search do with a model that reads images.

#include <string>
#include <vector>

#include "cli/reports/classified.h"
#include "cli/reports/vectors.h"
#include "fovea/infer/image_model.h"

namespace fovea::cli {

// Opens the model and prints the warnings about its files.
infer::ImageModel open_image_model(const std::string& folder, model::WeightPrecision precision,
                                   const std::vector<model::AdapterUse>& adapters = {});

// Prints the labels of images, by the model's head or by the texts of `labels`. Returns the exit
// code.
int classify_images(const infer::ImageModel& model, const std::vector<std::string>& images,
                    const std::vector<std::string>& labels, const infer::ImageOptions& options,
                    ClassifiedFormat format);

// Writes the vectors of images to the file `out` (empty: standard output). Returns the exit code.
int embed_images(const infer::ImageModel& model, const std::vector<std::string>& images,
                 const infer::ImageOptions& options, const VectorLayout& layout,
                 const std::string& out);

// The same for the lines of text files, by a model of images and texts; without files, those of
// standard input.
int embed_lines(const infer::ImageModel& model, const std::vector<std::string>& files,
                const infer::ImageOptions& options, const VectorLayout& layout,
                const std::string& out);

}  // namespace fovea::cli
