#include "data/corpus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "support/compressed.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

using namespace std::string_literals;
using Documents = std::vector<std::string>;

class CorpusTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    make_directories(parent_of(folder_ / name));
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }

  static Documents read(Corpus& corpus) {
    Documents documents;
    corpus.read([&](const Corpus::Piece& piece) {
      if (piece.starts_document) documents.emplace_back();
      documents.back() += piece.text;
    });
    return documents;
  }

  static Documents read(const std::vector<std::filesystem::path>& paths) {
    Corpus corpus(paths);
    return read(corpus);
  }

  // Expects that reading the file fails with this text after its name.
  void refused(const std::string& name, const std::string& text) {
    expect_error(ErrorKind::BadFile, {(folder_ / name) + text}, [&] { read({folder_ / name}); });
  }

  TemporaryFolder folder_;
};

TEST_F(CorpusTest, KeepsTextUnchanged) {
  for (const std::string& text :
       {"x"s, "no newline"s, "a\r\nb\r\n"s, "\n\n"s, "é日👩\u200d🚀\n"s}) {
    EXPECT_EQ(read({write("a.txt", text)}), Documents{text});
  }
}

TEST_F(CorpusTest, DropsAByteOrderMark) {
  EXPECT_EQ(read({write("a.txt", "\uFEFFab")}), Documents{"ab"});
  EXPECT_EQ(read({write("a.jsonl", "\uFEFF{\"text\": \"ab\"}")}), Documents{"ab"});
}

TEST_F(CorpusTest, SplitsALargeLineBetweenCharacters) {
  std::string text(size_t{3} << 20, 'x');
  for (size_t i = 0; i + 4 < text.size(); i += 7) text.replace(i, 3, "日");
  Corpus corpus({write("a.txt", text)});
  std::string all;
  int pieces = 0;
  corpus.read([&](const Corpus::Piece& piece) {
    EXPECT_LE(piece.text.size(), size_t{1} << 20);
    EXPECT_NE(static_cast<uint8_t>(piece.text[0]) & 0xC0, 0x80);
    EXPECT_EQ(piece.starts_document, pieces == 0);
    all += piece.text;
    ++pieces;
  });
  EXPECT_EQ(all, text);
  EXPECT_GE(pieces, 3);
}

TEST_F(CorpusTest, ReportsProgressAndCanBeStopped) {
  const std::string long_text(size_t{3} << 20, 'x');
  Corpus corpus({write("a.txt", long_text), write("b.txt", long_text)});
  std::vector<double> told;
  corpus.watch([&](double fraction) {
    told.push_back(fraction);
    return true;
  });
  read(corpus);
  EXPECT_GE(told.size(), 4u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LT(told.front(), 0.5);
  EXPECT_EQ(told.back(), 1.0);
  corpus.watch([](double fraction) { return fraction < 0.5; });
  EXPECT_THROW(read(corpus), ReadingStopped);
  corpus.watch({});
  EXPECT_EQ(read(corpus).size(), 2u);
}

TEST_F(CorpusTest, ReadsJsonLines) {
  const std::string path =
      write("a.jsonl",
            "{\"text\": \"one\\n\\u00e9\", \"id\": 1}\r\n\n{\"text\": \"\"}\n{\"text\": \"two\"}");
  EXPECT_EQ(read({path}), (Documents{"one\né", "two"}));
  EXPECT_TRUE(Corpus({path}).separates_documents());
}

TEST_F(CorpusTest, ReadsFoldersSortedByName) {
  write("d/b.txt", "2");
  write("d/a/z.txt", "1");
  write("d/c.jsonl", "{\"text\":\"3\"}\n{\"text\":\"4\"}\n");
  write("d/empty.txt", "");
  write("d/ignored.md", "x");
  write("d/.hidden.txt", "x");
  write("d/.git/x.txt", "x");
  Corpus corpus({folder_ / "d"});
  EXPECT_EQ(read(corpus), (Documents{"1", "2", "3", "4"}));
  ASSERT_EQ(corpus.files().size(), 3u);
  EXPECT_EQ(corpus.files()[0].path.string(), folder_ / "d/a/z.txt");
  EXPECT_EQ(corpus.bytes(), 1 + 1 + 26);
  EXPECT_TRUE(corpus.separates_documents());
  EXPECT_FALSE(Corpus({folder_ / "d/a"}).separates_documents());
}

// The same pieces as of a plain file, so that tokens do not depend on the compression.
TEST_F(CorpusTest, ReadsCompressedFiles) {
  std::string text;
  for (int i = 0; text.size() < (size_t{3} << 20); ++i) text += fmt::format("{} 日é ", i * 7919);
  const auto pieces = [](Corpus corpus) {
    std::vector<std::string> all;
    corpus.read([&](const Corpus::Piece& piece) { all.emplace_back(piece.text); });
    return all;
  };
  write("d/b.jsonl.zst", zstandard("{\"text\": \"one\"}\n{\"text\": \"two\"}\n"));
  write("d/a.txt.gz", gzip("zero"));
  write("d/c.gz", "ignored");
  EXPECT_EQ(read({folder_ / "d"}), (Documents{"zero", "one", "two"}));
  const std::vector<std::string> plain = pieces(Corpus({write("a.txt", text)}));
  EXPECT_GE(plain.size(), 4u);
  EXPECT_EQ(pieces(Corpus({write("a.txt.gz", gzip(text))})), plain);
  EXPECT_EQ(pieces(Corpus({write("a.txt.zst", zstandard(text))})), plain);
  const Corpus estimated({folder_ / "d/a.txt.gz"});
  EXPECT_EQ(estimated.text_bytes(), 4 * estimated.bytes());
  write("bad.txt.gz", gzip("good \xFF"));
  refused("bad.txt.gz", ":1:6: is not UTF-8 (byte 0xff)");
}

TEST_F(CorpusTest, HashesContentNotNames) {
  const auto hash = [&](const std::vector<std::filesystem::path>& paths) {
    return Corpus(paths).hash();
  };
  const auto a = write("a.txt", "xy"), b = write("b.txt", "xy"), c = write("c.txt", "xz");
  EXPECT_EQ(hash({a}), hash({b}));
  EXPECT_NE(hash({a}), hash({c}));
  EXPECT_NE(hash({write("1.txt", "x"), write("2.txt", "y")}), hash({a}));
  Corpus corpus({a});
  read(corpus);
  EXPECT_EQ(corpus.hash(), hash({a}));
}

TEST_F(CorpusTest, RefusesEmptyFiles) {
  refused("none.txt", ": is missing; expected a regular file");
  write("empty.txt", "");
  refused("empty.txt", ": is empty; expected text");
  write("mark.txt", "\uFEFF");
  refused("mark.txt", ": contains no text; expected at least one character");
  write("blank.jsonl", "{\"text\": \"\"}\n");
  refused("blank.jsonl", ": contains no text; expected at least one character");
  write("folder/a.md", "x");
  refused("folder",
          ": contains no text; expected files *.txt, *.jsonl, *.json or *.parquet, or the first "
          "three as ");
  expect_error(ErrorKind::InvalidArgument, {"data: is missing"}, [] { Corpus corpus({}); });
}

TEST_F(CorpusTest, RefusesSpecialFiles) {
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  refused("fifo", ": is a FIFO; expected a regular file");
  expect_error(ErrorKind::BadFile, {"/dev/zero: is a device; expected a regular file"},
               [] { Corpus corpus({"/dev/zero"}); });
}

TEST_F(CorpusTest, RefusesUnreadableFiles) {
  write("a.txt", "x");
  const SavedCalls saved;
  system_calls().open = [](const char*, int, mode_t) {
    errno = EACCES;
    return -1;
  };
  refused("a.txt", ": cannot be opened (Permission denied); expected a regular file");
}

TEST_F(CorpusTest, LocatesInvalidUtf8) {
  write("a.txt", "one\ntwo \xFF\n");
  refused("a.txt", ":2:5: is not UTF-8 (byte 0xff); expected UTF-8 text");
  write("cut.txt", "one\r\n\xE2\x82");
  refused("cut.txt", ":2:1: is not UTF-8 (byte 0xe2); expected UTF-8 text");
  write("far.txt", std::string(3000000, 'x') + "\n" + std::string(2000000, 'y') + "\xC3\x28");
  refused("far.txt", ":2:2000001: is not UTF-8 (byte 0xc3)");
  write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": \"\xFF\"}\n");
  refused("a.jsonl", ":2:11: is not UTF-8 (byte 0xff)");
}

TEST_F(CorpusTest, RefusesBinaryAndCompressedFiles) {
  write("nul.txt", "ab\nc\0d"s);
  refused("nul.txt", ":2:2: looks binary (a NUL byte); expected UTF-8 text");
  write("image.txt", "\x89PNG\r\n\x1A\n\0\0"s);
  refused("image.txt", ":3:1: looks binary (a NUL byte)");
  write("a.txt", "\x1F\x8B\x08\0\0"s);
  refused("a.txt", ": ends within its compressed data (byte 6); expected a complete");
}

TEST_F(CorpusTest, NamesTheInvalidJsonLine) {
  write("a.jsonl", "{\"text\": \"x\"}\n\n{\"body\": \"x\"}\n");
  refused("a.jsonl", ":3: text is missing; expected");
  write("b.jsonl", "{\"text\": 5}\n");
  refused("b.jsonl", ":1: text is 5; expected a string");
  write("c.jsonl", "{\"text\": \"x\"}\nhello\n");
  refused("c.jsonl", ":2: ");
  write("long.jsonl", std::string(size_t{65} << 20, 'x'));
  refused("long.jsonl", ":1: is too long; expected records of at most 67108864 bytes");
  write("d.json", "[1, 2]\n");
  refused("d.json", ":1: is an array of 2 elements; expected an object with the key text");
}

TEST_F(CorpusTest, RefusesAFileThatShrank) {
  Corpus corpus({write("a.txt", "0123456789")});
  ASSERT_EQ(truncate((folder_ / "a.txt").c_str(), 4), 0);
  expect_error(ErrorKind::BadFile, {"a.txt: shrank while it was read (at byte 4 of 10)"},
               [&] { read(corpus); });
}

TEST_F(CorpusTest, IgnoresTextAppendedLater) {
  Corpus corpus({write("a.txt", "01234")});
  write("a.txt", "0123456789");
  EXPECT_EQ(read(corpus), Documents{"01234"});
}

TEST_F(CorpusTest, RefusesAFileThatChangedBetweenReadings) {
  Corpus corpus({write("a.txt", "01234")});
  read(corpus);
  write("a.txt", "abcde");
  expect_error(ErrorKind::BadFile, {"a.txt: changed between two readings; expected"},
               [&] { read(corpus); });
}

}  // namespace
}  // namespace fovea::train
