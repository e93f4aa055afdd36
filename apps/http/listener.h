#pragma once

#include <sys/types.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "http/http_server.h"

namespace fovea::http {

using Socket = boost::asio::generic::stream_protocol::socket;  // of TCP or a Unix socket

// Listens at the address, or at the Unix socket, of `options`. A socket that an ended server has
// left behind is replaced. Throws InvalidArgument if the place is not available.
class Listener {
 public:
  Listener(boost::asio::io_context& context, const ServerOptions& options);
  ~Listener() { close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>& acceptor() {
    return acceptor_;
  }
  uint16_t port() const { return port_; }  // 0 = a Unix socket
  void close();                            // also removes the Unix socket

 private:
  void open_address(const ServerOptions& options);
  void open_socket(const std::string& path);

  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
  uint16_t port_ = 0;
  std::string path_;  // of the Unix socket; empty: none, or removed
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace fovea::http
