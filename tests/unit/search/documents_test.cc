#include "search/documents.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/bounded_program.h"
#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

// A PDF file with lines of text.
std::string pdf_of(const std::vector<std::string>& lines) {
  std::string content = "BT /F1 12 Tf 72 720 Td";
  for (const std::string& line : lines) content += " (" + line + ") Tj 0 -20 Td";
  content += " ET";
  const std::string objects[] = {
      "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
      "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
      "/Resources << /Font << /F1 5 0 R >> >> >>",
      "<< /Length " + std::to_string(content.size()) + " >>\nstream\n" + content + "\nendstream",
      "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"};
  std::string pdf = "%PDF-1.4\n", table = "0000000000 65535 f \n";
  int number = 0;
  for (const std::string& object : objects) {
    table += fmt::format("{:010} 00000 n \n", pdf.size());
    pdf += fmt::format("{} 0 obj\n{}\nendobj\n", ++number, object);
  }
  return pdf + fmt::format("xref\n0 6\n{}trailer << /Size 6 /Root 1 0 R >>\nstartxref\n{}\n%%EOF\n",
                           table, pdf.size());
}

class Documents : public testing::Test {
 protected:
  std::vector<Document> read(const std::string& name, const std::string& bytes) {
    write_file_atomically(folder_ / name, bytes);
    return reader_.read(folder_.path(), name);
  }
  TemporaryFolder folder_;
  DocumentReader reader_;
};

TEST_F(Documents, OfRecordsHaveTheirFields) {
  const auto found =
      read("a.jsonl",
           "{\"text\": \"one\", \"label\": \"x\", \"n\": 1.5, \"no\": null, \"list\": [1]}\n"
           "\n{\"text\": \"two\"}\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, "one");
  EXPECT_EQ(found[0].line, 1);
  EXPECT_EQ(found[0].fields, R"({"label":"x","n":1.5})");
  EXPECT_EQ(found[1].line, 3);
  EXPECT_EQ(found[1].fields, "");
  for (const char* text : {"one\ntwo\n", "{\"title\": \"x\"}\n", "[1, 2]\n", "{broken\n", ""}) {
    const auto plain = read("b.jsonl", text);
    ASSERT_EQ(plain.size(), 1u) << text;
    EXPECT_EQ(plain[0].text, text);
    EXPECT_EQ(plain[0].line, 0);
  }
}

TEST_F(Documents, AreReadByPrograms) {
  EXPECT_TRUE(DocumentReader::needs_program("a/B.PDF"));
  EXPECT_FALSE(DocumentReader::needs_program(".pdf"));
  EXPECT_FALSE(DocumentReader::needs_program("pdf.txt"));
  if (!find_program("pdftotext") || !find_program("html2text"))
    GTEST_SKIP() << "pdftotext or html2text is not installed";
  const auto pdf = read("a file; $(with) 'quotes'.pdf", pdf_of({"the fox sees", "the bird"}));
  ASSERT_EQ(pdf.size(), 1u);
  EXPECT_TRUE(pdf[0].text.starts_with("the fox sees\nthe bird\n")) << pdf[0].text;
  EXPECT_EQ(pdf[0].text.find('\f'), std::string::npos);
  const auto html = read(
      "b.HTML",
      "<h1>Eyes</h1><p>the <b>eye</b> &amp; the n&auml;ight * 2 == 4</p><hr><script>x</script>");
  ASSERT_EQ(html.size(), 1u);
  EXPECT_TRUE(html[0].text.starts_with(" Eyes \nthe eye & the n\xC3\xA4ight * 2 == 4\n"))
      << html[0].text;
  EXPECT_EQ(html[0].text.find("==="), std::string::npos);
  EXPECT_TRUE(reader_.unread().empty());
  EXPECT_TRUE(read("c.pdf", "no such file").empty());
  const auto unread = reader_.unread();
  ASSERT_EQ(unread.size(), 1u);
  EXPECT_TRUE(unread[0].starts_with("c.pdf: ") && unread[0].find("pdftotext") != std::string::npos)
      << unread[0];
}

TEST_F(Documents, NameThePackageOfAMissingProgram) {
  const char* old = std::getenv("PATH");
  const std::string path = old == nullptr ? "" : old;
  ASSERT_EQ(setenv("PATH", folder_.path().c_str(), 1), 0);
  EXPECT_TRUE(read("a.pdf", "x").empty());
  EXPECT_TRUE(read("b.pdf", "x").empty());
  EXPECT_TRUE(read("c.docx", "x").empty());
  EXPECT_TRUE(read("d.html", "x").empty());
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(reader_.unread(),
            (std::vector<std::string>{
                "c.docx: not read; expected the program of the package docx2txt",
                "d.html: not read; expected the program of the package html2text",
                "a.pdf and 1 more: not read; expected the program of the package poppler-utils"}));
}

TEST(DatesOfFiles, AreInUtc) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "x");
  const timespec times[] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (folder / "a").c_str(), times, 0), 0);
  EXPECT_EQ(date_of_file(folder / "a"), "2023-11-14T22:13:20Z");
  EXPECT_EQ(date_of_file(folder / "none"), "");
}

}  // namespace
}  // namespace fovea::infer
