#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace fovea::http {

// A plain socket to 127.0.0.1; reading times out after ten seconds.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {10, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  explicit Client(const std::string& unix_socket)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    unix_socket.copy(address.sun_path, sizeof address.sun_path - 1);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { leave(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  bool say(const std::string& bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  void half_close() { shutdown(socket_, SHUT_WR); }
  void leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  // Reads until `mark` has arrived or the connection ends, and returns the bytes.
  std::string hear(const std::string& mark = "") {
    std::string heard;
    char piece[4096];
    while (mark.empty() || heard.find(mark) == std::string::npos) {
      const ssize_t count = recv(socket_, piece, sizeof piece, 0);
      if (count < 0) return heard + "<no more data>";
      if (count == 0) break;
      heard.append(piece, static_cast<size_t>(count));
    }
    return heard;
  }

 private:
  int socket_;
  bool connected_ = false;
};

}  // namespace fovea::http
