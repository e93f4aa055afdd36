// The module fovea_hub.so: HTTP by libcurl, hashes by libcrypto.

#include <curl/curl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <vector>

#include "hub/transport.h"

namespace fovea::model {
namespace {

constexpr long kConnectSeconds = 30, kSilentSeconds = 60, kMostRedirects = 10;
constexpr long kBufferBytes = 512 * 1024;

// Returns the file of trusted certificates; libcurl knows only the place of the system that it was
// compiled for.
std::string certificates() {
  for (const char* const name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* const value = std::getenv(name); value != nullptr && *value != 0) return value;
  for (const char* const path :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    struct stat status = {};
    if (stat(path, &status) == 0) return path;
  }
  return "";
}

// One transfer; libcurl calls the functions below with it.
struct Exchange {
  const Transport::Receive& receive;
  const std::function<bool()>& tick;
  HttpResponse response;
  std::exception_ptr thrown;
};

// Calls `function`, which may throw, from C; `stopped` is the result that ends the transfer.
template <class Result, class Function>
Result guarded(Exchange& exchange, Result stopped, const Function& function) {
  try {
    return function();
  } catch (...) {
    exchange.thrown = std::current_exception();
    return stopped;
  }
}

size_t on_header(char* data, size_t, size_t bytes, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  return guarded(exchange, size_t{0}, [&] {
    std::string_view line(data, bytes);
    if (line.starts_with("HTTP/")) {  // of the next response after a redirect
      exchange.response.headers.clear();
      return bytes;
    }
    const size_t colon = line.find(':');
    if (colon == line.npos) return bytes;
    std::string name(line.substr(0, colon));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    line.remove_prefix(colon + 1);
    const size_t begin = line.find_first_not_of(" \t\r\n");
    exchange.response.headers[name] =
        begin == line.npos ? "" : line.substr(begin, line.find_last_not_of(" \t\r\n") - begin + 1);
    return bytes;
  });
}

struct EasyHandle {
  CURL* curl;
  Exchange* exchange;
};

size_t on_data(char* data, size_t, size_t bytes, void* user) {
  const EasyHandle& handle = *static_cast<EasyHandle*>(user);
  return guarded(*handle.exchange, size_t{0}, [&]() -> size_t {
    long status = 0;
    curl_easy_getinfo(handle.curl, CURLINFO_RESPONSE_CODE, &status);
    handle.exchange->response.status = static_cast<int>(status);
    if (status != 200 && status != 206) return bytes;  // the page of an error
    handle.exchange->receive(handle.exchange->response, {data, bytes});
    return bytes;
  });
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  return guarded(exchange, 1, [&] { return exchange.tick() ? 0 : 1; });
}

bool is_final(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_TOO_MANY_REDIRECTS: return true;
    default: return false;
  }
}

class CurlTransport final : public Transport {
 public:
  ~CurlTransport() override {
    for (CURL* const curl : idle_) curl_easy_cleanup(curl);
  }

  HttpResponse get(const HttpRequest& request, const Receive& receive,
                   const std::function<bool()>& tick) override {
    Exchange exchange{receive, tick, {}, nullptr};
    CURL* const curl = take();
    EasyHandle handle{curl, &exchange};
    prepare(curl, request);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &handle);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    std::array<char, CURL_ERROR_SIZE> message = {};
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message.data());
    const CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    give_back(curl);
    if (exchange.thrown) std::rethrow_exception(exchange.thrown);
    exchange.response.status = static_cast<int>(status);
    if (code != CURLE_OK) {
      exchange.response.error = message[0] != 0 ? message.data() : curl_easy_strerror(code);
      exchange.response.final = is_final(code);
      if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_PEER_FAILED_VERIFICATION)
        exchange.response.error += " (certificates: " + certificates() +
                                   "; the package ca-certificates has them, and SSL_CERT_FILE "
                                   "names another file)";
    }
    return std::move(exchange.response);
  }

 private:
  static void prepare(CURL* curl, const HttpRequest& request) {
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "fovea");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMostRedirects);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, request.only_tls ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, request.only_tls ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
    if (const std::string file = certificates(); !file.empty())
      curl_easy_setopt(curl, CURLOPT_CAINFO, file.c_str());
    if (!request.token.empty()) {  // libcurl drops it at a redirect to another host
      curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, request.token.c_str());
    }
    if (request.offset > 0)
      curl_easy_setopt(curl, CURLOPT_RANGE, (std::to_string(request.offset) + "-").c_str());
  }

  // A handle keeps its connections for the next request.
  CURL* take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      CURL* const made = curl_easy_init();
      if (made == nullptr) throw std::bad_alloc();
      return made;
    }
    CURL* const curl = idle_.back();
    idle_.pop_back();
    curl_easy_reset(curl);
    return curl;
  }
  void give_back(CURL* curl) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(curl);
  }

  std::mutex mutex_;
  std::vector<CURL*> idle_;
};

class EvpDigest final : public Digest {
 public:
  explicit EvpDigest(bool sha256) : context_(EVP_MD_CTX_new()) {
    if (!context_ ||
        EVP_DigestInit_ex(context_.get(), sha256 ? EVP_sha256() : EVP_sha1(), nullptr) != 1)
      throw std::bad_alloc();
  }
  void add(std::string_view bytes) override {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  std::string hexadecimal() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes = {};
    unsigned int count = 0;
    EVP_DigestFinal_ex(context_.get(), bytes.data(), &count);
    std::string text;
    for (unsigned int i = 0; i < count; ++i)
      for (const int digit : {bytes[i] >> 4, bytes[i] & 15}) text += "0123456789abcdef"[digit];
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace
}  // namespace fovea::model

// NOLINTNEXTLINE(misc-use-internal-linkage)
extern "C" __attribute__((visibility("default"))) const fovea::model::HubModule fovea_hub_module;
const fovea::model::HubModule fovea_hub_module = {
    []() -> std::unique_ptr<fovea::model::Transport> {
      static const bool started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
      if (!started) throw std::bad_alloc();
      return std::make_unique<fovea::model::CurlTransport>();
    },
    [](bool sha256) -> std::unique_ptr<fovea::model::Digest> {
      return std::make_unique<fovea::model::EvpDigest>(sha256);
    }};
