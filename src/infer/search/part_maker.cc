#include "search/part_maker.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "parallel/communicator.h"
#include "search/dense_search.h"
#include "search/passages.h"

namespace fovea::infer {
namespace {

constexpr size_t kPassagesAtOnce = 256;  // number embedded between two calls of `progress`

std::vector<uint64_t> groups_of(const std::vector<IndexedPassage>& passages, const TextRows& rows) {
  std::vector<uint64_t> groups;
  for (const size_t first : rows.passages) groups.push_back(group_of(passages[first].text));
  return groups;
}

WordIndex words_of(const std::vector<IndexedPassage>& passages, const TextRows& rows) {
  std::vector<std::string_view> texts;
  for (const size_t first : rows.passages) texts.emplace_back(passages[first].text);
  return WordIndex(texts);
}

}  // namespace

KnownVectors::KnownVectors(const std::string& path, const IndexSettings& settings) {
  if (!is_index(path)) return;
  try {
    IndexDescription description = read_description(path);
    const IndexSettings& s = description.settings;
    if (s.fingerprint != settings.fingerprint || s.width != settings.width ||
        s.kind != settings.kind || s.precision != settings.precision)
      return;
    index_.emplace(path, std::move(description));
    vectors_.emplace(*index_);
    for (int64_t p = 0; p < index_->parts(); ++p)
      if (s.kind == VectorKind::dense) static_cast<void>(index_->part(p).dense());
    for (int64_t i = 0; i < index_->passages(); ++i)
      locations_.emplace(hash_bytes(index_->passage(i).text), index_->location(i));
  } catch (const Error&) {
    locations_.clear();
  }
}

bool KnownVectors::lend(const std::string& text, int64_t row, PassageVectors& vectors) const {
  const auto found = locations_.find(hash_bytes(text));
  if (found == locations_.end()) return false;
  const auto [p, passage] = found->second;
  const IndexPart& part = index_->part(p);
  if (part.passage(passage).text != text) return false;  // another text with this hash
  vectors_->copy(p, part.table().row(passage), vectors, row);
  return true;
}

PartMaker::PartMaker(const std::string& path, const IndexSettings& settings,
                     const PassageModel& model, const KnownVectors* known,
                     const SearchBuildOptions& options, SearchBuild& result, IndexWriter* writer)
    : path_(path),
      settings_(settings),
      model_(model),
      known_(known),
      options_(options),
      result_(result),
      reader_([this] { return options_.progress && !options_.progress(embedded_, to_embed_); }),
      given_writer_(writer) {
  result_.limit = model.max_tokens();
}

IndexWriter& PartMaker::writer() {
  if (given_writer_ != nullptr) return *given_writer_;
  if (!own_writer_) own_writer_.emplace(path_);
  return *own_writer_;
}

void PartMaker::add(const std::string& folder, const std::string& file) {
  const PassageRules rules{settings_.passage_tokens, settings_.overlap_tokens};
  ++result_.files;
  dates_[file] = date_of_file(folder + "/" + file);
  int32_t position = 0;
  for (const Document& document : reader_.read(folder, file)) {
    const std::string& text = document.text;
    for (const PassageSpan& span : cut_passages(text, rules, model_.tokenizer())) {
      const bool whole = document.line > 0;
      passages_.push_back(
          {file, whole ? document.line : span.line, whole ? document.line : span.last_line,
           text.substr(span.begin, span.end - span.begin), document.fields, position++});
      if (!groups_.insert(group_of(passages_.back().text)).second) ++result_.duplicates;
      if (std::ssize(passages_) >= options_.part_passages) write();
    }
  }
  result_.unread = reader_.unread();
}

// Copies known vectors and computes the others; counts these in the result.
IndexedVectors PartMaker::vectors_of(const std::vector<IndexedPassage>& passages,
                                     const TextRows& rows) {
  PassageVectors vectors(settings_, std::ssize(rows.passages));
  std::vector<int64_t> fresh;
  std::unordered_set<uint64_t> counted;  // texts that differ in white space count once
  for (size_t row = 0; row < rows.passages.size(); ++row) {
    const auto at = static_cast<int64_t>(row);
    if (known_ == nullptr || !known_->lend(passages[rows.passages[row]].text, at, vectors))
      fresh.push_back(at);
  }
  to_embed_ += std::ssize(fresh);
  const auto most = static_cast<size_t>(options_.ranks == nullptr ? 1 : options_.ranks->size());
  for (size_t done = 0; done < fresh.size();) {
    if (options_.progress && !options_.progress(embedded_, to_embed_))
      fail(ErrorKind::Failed, "search: interrupted; the index is unchanged");
    std::vector<TextBlock> blocks;
    for (size_t next = done; blocks.size() < most && next < fresh.size();) {
      TextBlock& block = blocks.emplace_back();
      for (; block.texts.size() < kPassagesAtOnce && next < fresh.size(); ++next) {
        const IndexedPassage& p = passages[rows.passages[static_cast<size_t>(fresh[next])]];
        block.texts.push_back(p.text);
        block.names.push_back(fmt::format("{}: line {}", p.file, p.line));
      }
    }
    const std::vector<BlockVectors> computed = compute_vectors(model_, options_.ranks, blocks);
    for (size_t b = 0; b < computed.size(); ++b) {
      for (size_t i = 0; i < computed[b].bytes.size(); ++i) {
        vectors.set(fresh[done++], computed[b].bytes[i]);
        ++embedded_;
        if (counted.insert(group_of(blocks[b].texts[i])).second) ++result_.embedded;
        if (computed[b].cut[i] > 0 && result_.cut++ == 0) result_.first_cut = blocks[b].names[i];
      }
    }
  }
  return vectors.finish();
}

void PartMaker::write() {
  if (passages_.empty()) return;
  const TextRows rows = distinct_texts(passages_);
  PartContents part = {passages_,
                       rows,
                       groups_of(passages_, rows),
                       dates_,
                       vectors_of(passages_, rows),
                       words_of(passages_, rows)};
  passages_.clear();
  if (options_.graph)
    part.graph.emplace(std::get<DenseVectors>(part.vectors).tensors().at("values"),
                       settings_.similarity);
  parts_.push_back(writer().write(part));
}

std::vector<PartEntry> PartMaker::finish() {
  write();
  if (options_.ranks != nullptr) compute_vectors(model_, options_.ranks, {});
  result_.passages = std::ssize(groups_);
  return parts_;
}

std::vector<PartEntry> merge_parts(const IndexContents& index, const std::vector<char>& merged,
                                   int64_t part_passages, IndexWriter& writer) {
  const StoredVectors stored(index);
  std::vector<PartEntry> parts;
  std::vector<IndexContents::Location> locations;
  std::vector<IndexedPassage> passages;
  std::map<std::string, std::string> dates;
  const auto write = [&] {
    if (passages.empty()) return;
    const TextRows rows = distinct_texts(passages);
    PassageVectors vectors(index.settings(), std::ssize(rows.passages));
    for (size_t row = 0; row < rows.passages.size(); ++row) {
      const auto [p, passage] = locations[rows.passages[row]];
      stored.copy(p, index.part(p).table().row(passage), vectors, static_cast<int64_t>(row));
    }
    parts.push_back(writer.write({passages, rows, groups_of(passages, rows), dates,
                                  vectors.finish(), words_of(passages, rows)}));
    locations.clear();
    passages.clear();
  };
  for (int64_t i = 0; i < index.passages(); ++i) {
    const auto location = index.location(i);
    if (merged[static_cast<size_t>(location.part)] == 0) continue;
    const PassageTable& table = index.part(location.part).table();
    const PassageTable::File& file =
        table.files()[static_cast<size_t>(table.file(location.passage))];
    if (std::ssize(passages) >= part_passages) write();
    dates[file.name] = file.date;
    locations.push_back(location);
    passages.push_back(index.passage(i));
    passages.back().position = table.position(location.passage);
  }
  write();
  return parts;
}

std::vector<GraphRecall> measure_recall(const std::string& path, const IndexDescription& index) {
  constexpr int64_t kQueries = 100, kNearest = 10;
  const IndexContents contents(path, index);
  std::vector<DensePart> parts;
  int64_t rows = 0;
  for (int64_t p = 0; p < contents.parts(); ++p) {
    parts.push_back({&contents.part(p).dense(), contents.all().of(p)});
    rows += contents.part(p).table().rows();
  }
  constexpr int64_t kCandidates[] = {16, 32, 64, 128, 256, 512};
  std::vector<GraphRecall> recall;
  for (const int64_t candidates : kCandidates) recall.push_back({candidates, 0});
  int64_t queries = 0, at = 0;
  for (int64_t p = 0; p < contents.parts(); ++p) {
    const auto numbers = contents.all().of(p);
    for (int64_t row = 0; row < std::ssize(numbers); ++row, ++at) {
      const int64_t self = numbers[static_cast<size_t>(row)];
      // Rows at equal distances, except those of texts that are found elsewhere.
      if (self < 0 || at * kQueries / rows == (at - 1) * kQueries / rows) continue;
      const std::vector<float> query = contents.part(p).dense().vector(row);
      const DenseSearch search(query, index.settings.similarity, parts);
      const auto without_self = [&](std::vector<ScoredPassage> found) {
        std::erase_if(found, [&](const ScoredPassage& one) { return one.number == self; });
        found.resize(std::min(found.size(), static_cast<size_t>(kNearest)));
        return found;
      };
      const std::vector<ScoredPassage> wanted = without_self(search.best(kNearest + 1));
      if (wanted.empty()) continue;
      ++queries;
      for (GraphRecall& each : recall) {
        const auto found = without_self(
            best_by_graphs(contents, contents.all(), query, kNearest + 1, each.candidates));
        const auto is_found = [&](const ScoredPassage& one) {
          return std::ranges::any_of(found, [&](const auto& f) { return f.number == one.number; });
        };
        each.recall += static_cast<double>(std::ranges::count_if(wanted, is_found)) /
                       static_cast<double>(wanted.size());
      }
    }
  }
  for (GraphRecall& each : recall)
    each.recall = queries == 0 ? 1 : each.recall / static_cast<double>(queries);
  return recall;
}

}  // namespace fovea::infer
