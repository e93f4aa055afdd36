#include "http/listener.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>

#include "fovea/core/error.h"

namespace fovea::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Unix = asio::local::stream_protocol;

[[noreturn]] void fail_binding(const ServerOptions& options, const std::string& why) {
  throw Error(ErrorKind::InvalidArgument,
              fmt::format("{}:{}: cannot listen there ({}); expected a free port of an address of "
                          "this machine",
                          options.host, options.port, why));
}

[[noreturn]] void fail_socket(const std::string& path, const std::string& why,
                              const char* expected = "a path where a socket can be made") {
  throw Error(ErrorKind::InvalidArgument,
              fmt::format("{}: cannot listen there ({}); expected {}", path, why, expected));
}

// Removes the socket of a server that has ended without removing it.
void remove_stale(asio::io_context& context, const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) return;  // bind() reports all other problems
  if (!S_ISSOCK(status.st_mode))
    fail_socket(path, "there is a file that is no socket", "a path without a file");
  Unix::socket probe(context);
  error_code error;
  probe.connect(Unix::endpoint(path), error);
  if (!error || error == asio::error::try_again)  // its queue is full
    fail_socket(path, "a server listens there", "the path of another socket");
  if (error != asio::error::connection_refused) fail_socket(path, error.message());
  if (unlink(path.c_str()) != 0 && errno != ENOENT) fail_socket(path, std::strerror(errno));
}

}  // namespace

Listener::Listener(asio::io_context& context, const ServerOptions& options) : acceptor_(context) {
  if (options.socket.empty()) {
    open_address(options);
  } else {
    remove_stale(context, options.socket);
    open_socket(options.socket);
  }
}

void Listener::open_address(const ServerOptions& options) {
  error_code error;
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (error) fail_binding(options, "not an IP address");
  tcp::endpoint endpoint(address, options.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) fail_binding(options, error.message());
  const auto bound = acceptor_.local_endpoint();
  std::memcpy(endpoint.data(), bound.data(), std::min(endpoint.capacity(), bound.size()));
  port_ = endpoint.port();
}

// Only the owner and the group of the socket may connect.
void Listener::open_socket(const std::string& path) {
  constexpr mode_t kMode = 0660;
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    fail_socket(path, fmt::format("{} bytes", path.size()),
                "a path of at most 107 bytes, the limit of the system");
  const Unix::endpoint endpoint(path);
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (error) fail_socket(path, error.message());
  path_ = path;
  struct stat status = {};
  if (chmod(path.c_str(), kMode) == 0 && lstat(path.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
  } else {
    error = error_code(errno, boost::system::system_category());
  }
  if (!error) return;
  close();
  fail_socket(path, error.message());
}

void Listener::close() {
  error_code ignored;
  struct stat status = {};
  // Another program may have replaced the socket.
  if (!path_.empty() && lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
      status.st_ino == inode_)
    unlink(path_.c_str());
  path_.clear();
  acceptor_.close(ignored);
}

}  // namespace fovea::http
