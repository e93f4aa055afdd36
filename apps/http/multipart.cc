#include "http/multipart.h"

#include <algorithm>

#include "http/header_text.h"
#include "http/request_head.h"

namespace fovea::http {
namespace {

constexpr size_t kMostParts = 16, kHeaderBytes = 4096, kBoundaryBytes = 70;

[[noreturn]] void refuse(const std::string& message) { throw Refusal{400, "body: " + message}; }

std::string boundary_of(std::string_view content_type) {
  const HeaderValue type = header_value(content_type, "Content-Type");
  const auto found = type.parameters.find("boundary");
  if (type.value != "multipart/form-data" || found == type.parameters.end()) {
    throw Refusal{400, "Content-Type: expected multipart/form-data with a boundary"};
  }
  const std::string& boundary = found->second;
  const bool valid = !boundary.empty() && boundary.size() <= kBoundaryBytes &&
                     std::all_of(boundary.begin(), boundary.end(), [](char c) {
                       return is_digit(c) || is_letter(c) ||
                              std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
                     });
  if (!valid) throw Refusal{400, "Content-Type: the boundary is malformed"};
  return boundary;
}

bool take(std::string_view& rest, std::string_view prefix) {
  if (rest.substr(0, prefix.size()) != prefix) return false;
  rest.remove_prefix(prefix.size());
  return true;
}

// Removes the headers of a part and their empty line from `rest`.
FormPart take_headers(std::string_view& rest) {
  FormPart part;
  bool named = false;
  size_t bytes = 0;
  while (!take(rest, "\r\n")) {
    const size_t end = rest.substr(0, kHeaderBytes).find("\r\n");
    if (end != std::string_view::npos) bytes += end;
    if (end == std::string_view::npos || bytes > kHeaderBytes)
      refuse("the headers of a part have no end within " + std::to_string(kHeaderBytes) + " bytes");
    const std::string_view line = rest.substr(0, end);
    const size_t colon = std::min(line.find(':'), line.size());
    rest.remove_prefix(end + 2);
    if (lower(line.substr(0, colon)) != "content-disposition") continue;
    HeaderValue value =
        header_value(trimmed(line.substr(std::min(colon + 1, line.size()))), "Content-Disposition");
    const auto name = value.parameters.find("name");
    if (named || value.value != "form-data" || name == value.parameters.end())
      refuse("expected one Content-Disposition per part: form-data with a name");
    named = true;
    part.name = name->second;
    if (const auto file = value.parameters.find("filename"); file != value.parameters.end())
      part.filename = file->second;
  }
  if (!named) refuse("a part has no name");
  return part;
}

}  // namespace

std::vector<FormPart> form_parts(std::string_view content_type, std::string_view body) {
  const std::string mark = "--" + boundary_of(content_type), delimiter = "\r\n" + mark;
  std::vector<FormPart> parts;
  if (!take(body, mark)) refuse("expected the boundary at its beginning");
  while (!take(body, "--")) {
    if (!take(body, "\r\n")) refuse("expected a new line after a boundary");
    if (parts.size() == kMostParts) refuse("more than " + std::to_string(kMostParts) + " parts");
    FormPart part = take_headers(body);
    const size_t end = body.find(delimiter);
    if (end == std::string_view::npos) refuse("the last boundary is missing");
    part.content = body.substr(0, end);
    body.remove_prefix(end + delimiter.size());
    parts.push_back(std::move(part));
  }
  if (!body.empty() && body != "\r\n") refuse("expected nothing after the last boundary");
  return parts;
}

}  // namespace fovea::http
