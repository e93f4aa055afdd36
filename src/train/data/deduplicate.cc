#include "fovea/train/deduplicate.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/fields.h"
#include "base/files.h"
#include "base/ordered_json.h"
#include "data/corpus.h"
#include "data/min_hash.h"
#include "fovea/core/excerpt.h"
#include "fovea/text/text_lines.h"
#include "records/text_hash.h"

namespace fovea::train {
namespace {

constexpr size_t kLargest = size_t{64} << 20;  // bytes of a document, or of a line
constexpr size_t kBuffered = size_t{1} << 20;  // bytes of records
constexpr size_t kExamples = 5;                // of each kind
constexpr size_t kShown = 100;                 // bytes of an example

using Amount = Deduplicated::Amount;

void add(Amount& amount, std::string_view text) {
  ++amount.number;
  amount.bytes += std::ssize(text);
}

// Receives the pieces of the documents and writes what is new in them.
class Deduplication {
 public:
  Deduplication(const DeduplicateOptions& options, const Corpus& corpus, const WritePiece& write)
      : lines_(options.lines), corpus_(corpus), write_(write) {
    if (options.near > 0) distinct_.emplace(options.near);
  }

  void add_piece(const Corpus::Piece& piece) {
    if (piece.starts_document) {
      end_document();
      while (first_of_file_.size() <= piece.file) first_of_file_.push_back(documents_);
      ++documents_;
    }
    text_ += piece.text;
    if (lines_) take_lines();
    if (text_.size() > kLargest)
      fail(ErrorKind::BadFile, "{}: its {} more than {} bytes; expected {}", where(documents_ - 1),
           lines_ ? "line has" : "text has", kLargest,
           lines_ ? "shorter lines" : "smaller documents, or `lines`");
  }

  Deduplicated end() {
    end_document();
    flush();
    return std::move(result_);
  }

 private:
  // Returns the place of a document, counted from 0 in all files.
  std::string where(uint32_t document) const {
    const auto after = std::upper_bound(first_of_file_.begin(), first_of_file_.end(), document);
    const auto file = static_cast<size_t>(after - first_of_file_.begin()) - 1;
    return fmt::format("{}, document {}", corpus_.files()[file].path.string(),
                       document - first_of_file_[file] + 1);
  }

  // Takes the complete lines of the text.
  void take_lines() {
    size_t begin = 0;
    for (size_t end = text_.find('\n'); end != text_.npos; end = text_.find('\n', begin)) {
      take_line(std::string_view(text_).substr(begin, end + 1 - begin));
      begin = end + 1;
    }
    text_.erase(0, begin);
  }

  // Blank lines separate paragraphs; they are kept.
  void take_line(std::string_view line) {
    add(result_.read, line);
    if (text::is_blank(line) || !is_known(line)) {
      add(result_.kept, line);
      kept_lines_ += line;
    }
  }

  void end_document() {
    if (documents_ == 0) return;
    if (lines_) {
      if (!text_.empty()) take_line(text_);
      if (!text::is_blank(kept_lines_)) write(kept_lines_);
      kept_lines_.clear();
    } else {
      add(result_.read, text_);
      if (!is_known(text_)) {
        add(result_.kept, text_);
        write(text_);
      }
    }
    text_.clear();
  }

  void write(const std::string& text) {
    records_ += json_line({{"text", text}}) + "\n";
    if (records_.size() > kBuffered) flush();
  }
  void flush() {
    write_(records_);
    records_.clear();
  }

  // Whether an equal text, or a similar one, occurred before.
  bool is_known(std::string_view text) {
    const uint32_t now = documents_ - 1;
    const auto [first, added] = equal_.try_emplace(text::hash_of_words(text), now);
    if (!added) {
      leave_out(result_.equal, text, first->second, 1);
      return true;
    }
    if (!distinct_) return false;
    const auto signature = min_hash(text);
    const auto match = signature ? distinct_->find_or_add(*signature, now) : std::nullopt;
    if (match) leave_out(result_.near, text, match->number, match->similarity);
    return match.has_value();
  }

  void leave_out(Amount& amount, std::string_view text, uint32_t kept, double similarity) {
    add(amount, text);
    if (static_cast<size_t>(amount.number) > kExamples) return;
    result_.examples.push_back(
        {where(documents_ - 1), excerpt(std::string(text), kShown), where(kept), similarity});
  }

  bool lines_;
  const Corpus& corpus_;
  const WritePiece& write_;
  Deduplicated result_;
  std::string text_, kept_lines_;                 // of the current document
  std::string records_;                           // that are not yet written
  uint32_t documents_ = 0;                        // so far, with the current one
  std::vector<uint32_t> first_of_file_;           // documents before each file
  std::unordered_map<uint64_t, uint32_t> equal_;  // hash -> document
  std::optional<DistinctTexts> distinct_;
};

}  // namespace

void visit(DeduplicateOptions& o, OptionVisitor& v) {
  v.texts({"data", "text files, directories or JSON lines, also as .gz or .zst"}, o.data);
  v.text({"out", "file of JSON lines {\"text\": ...} with what is kept"}, o.out);
  v.boolean({"lines", "leave out lines that occurred before instead of whole documents"}, o.lines);
  v.number({"near",
            "also leave out documents of at least this similarity to an earlier one: common runs "
            "of five words; 0 = equal documents only"},
           o.near, 0, 1);
}

Deduplicated deduplicate(const DeduplicateOptions& options,
                         const std::function<bool(double fraction)>& reading) try {
  check_fields(options);
  check_field(!options.out.empty(), "out", "is missing; expected a file of JSON lines");
  check_field(!options.lines || options.near == 0, "near",
              "given with `lines`; expected one of them");
  constexpr double kLeast = 0.3;  // with less, every text is compared with every other
  check_field(options.near == 0 || options.near >= kLeast, "near",
              "is {}; expected 0, or {} or more", options.near, kLeast);
  Corpus corpus(std::vector<std::filesystem::path>(options.data.begin(), options.data.end()));
  corpus.watch([&](double fraction) { return !reading || reading(fraction); });
  for (const Corpus::File& file : corpus.files()) {
    std::error_code none;
    check_field(!std::filesystem::equivalent(file.path, options.out, none), "out",
                "{} is one of the files of the data; expected another file", options.out);
  }
  Deduplicated result;
  write_file_atomically(options.out, static_cast<uint64_t>(corpus.text_bytes()),
                        [&](const WritePiece& write) {
                          Deduplication all(options, corpus, write);
                          corpus.read([&](const Corpus::Piece& piece) { all.add_piece(piece); });
                          result = all.end();
                        });
  return result;
} catch (const ReadingStopped&) {
  Deduplicated result;
  result.stopped = true;
  return result;
}

}  // namespace fovea::train
