#include "search/index_part.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace fovea::infer {

IndexPart::IndexPart(const std::string& index, const PartEntry& entry,
                     const IndexSettings& settings)
    : path_(index + "/" + entry.name),
      settings_(settings),
      hashes_(entry.hashes),
      lines_(path_of(index_file::kPassages), MappedFile::Access::random),
      words_file_(path_of(index_file::kWords)),
      vectors_file_(path_of(index_file::vectors(settings.kind))),
      table_(checked(index_file::kTable, SafeTensors(path_of(index_file::kTable))),
             path_of(index_file::kTable), static_cast<int64_t>(lines_.size())) {
  if (is_file(path_of(index_file::kGraph))) graph_file_.emplace(path_of(index_file::kGraph));
  for (const PassageTable::File& file : table_.files())
    deleted_.push_back(std::ranges::binary_search(entry.deleted, file.name) ? 1 : 0);
}

void IndexPart::check_hash(const char* name, const MappedFile& file) const {
  Hasher hasher;
  hasher.add(file);
  const auto hash = hashes_.find(name);
  if (hash == hashes_.end() || hash->second != hash_text(hasher.hash()))
    refuse_damage(path_of(name));
}

SafeTensors IndexPart::checked(const char* name, const SafeTensors& file) const {
  check_hash(name, *file.files().front());
  return file;
}

IndexedPassage IndexPart::passage(int64_t number) const {
  const std::string path = path_of(index_file::kPassages);
  const std::string_view line = table_.line(lines_.bytes(), number);
  if (hash_bytes(line) != table_.hash(number)) refuse_damage(path);
  return parse_passage(line, path);
}

const IndexedVectors& IndexPart::vectors() const {
  return vectors_.get([&]() -> IndexedVectors {
    const char* const name = index_file::vectors(settings_.kind);
    const SafeTensors file = checked(name, vectors_file_);
    const int64_t rows = table_.rows();
    switch (settings_.kind) {
      case VectorKind::sparse: return PostingLists(file, path_of(name), settings_.width, rows);
      case VectorKind::multiple:
        return PassageTokenVectors(file, path_of(name), settings_.width, rows);
      case VectorKind::dense: break;
    }
    return DenseVectors(file, path_of(name), rows, settings_.width, settings_.precision);
  });
}

const WordIndex& IndexPart::words() const {
  return words_.get([&] {
    return WordIndex(checked(index_file::kWords, words_file_), path_of(index_file::kWords),
                     table_.rows());
  });
}

const VectorGraph* IndexPart::graph() const {
  if (!graph_file_) return nullptr;
  return &graph_.get([&] {
    check_hash(index_file::kGraph, *graph_file_);
    return VectorGraph(graph_file_->bytes(), path_of(index_file::kGraph), table_.rows(),
                       settings_.width, settings_.similarity);
  });
}

}  // namespace fovea::infer
