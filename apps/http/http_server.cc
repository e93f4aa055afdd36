#include "http/http_server.h"

#include <malloc.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "http/connection.h"
#include "http/listener.h"

namespace fovea::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The number of connections above the limit that are accepted and refused with an error.
constexpr size_t kTurnedAway = 64;
// Without a free file descriptor accept() fails immediately; it is repeated after this time.
constexpr std::chrono::milliseconds kPause{200};
// After requests that held this much, the server returns free memory to the system when it is idle.
constexpr int64_t kLarge = int64_t{8} << 20;
constexpr std::chrono::seconds kLookForIdle{2};

}  // namespace

struct Server::Core {
  Core(Router routes, ServerOptions given)
      : options(std::move(given)),
        listener(context, options),
        pause(context),
        idle(context),
        pool(options.handlers, options.waiting) {
    use(std::move(routes));
  }

  void use(Router routes) {
    routers.push_back(std::move(routes));
    all.router = &routers.back();
  }

  void accept();
  void take(Socket socket);
  void connection_closed();
  void return_memory();

  std::list<Router> routers;  // the last one is used; requests may still run on others
  const ServerOptions options;
  asio::io_context context{1};
  Listener listener;
  asio::steady_timer pause, idle;
  HandlerPool pool;
  Connections all{nullptr, options, pool, [this] { connection_closed(); }};
  bool large = false;  // requests have held much since memory was returned
  bool full = false;   // accepting resumes when a connection closes
  std::mutex mutex;
  std::condition_variable emptied;
  bool empty = true;  // no connection is open
  std::thread thread;
};

void Server::Core::accept() {
  listener.acceptor().async_accept([this](error_code error, Socket socket) {
    if (all.draining) return;
    if (error) {
      pause.expires_after(kPause);
      pause.async_wait([this](error_code stopped) {
        if (!stopped) accept();
      });
      return;
    }
    take(std::move(socket));
    full = all.open.size() >= options.connections + kTurnedAway;
    if (!full) accept();
  });
}

void Server::Core::take(Socket socket) {
  const bool too_many = all.open.size() >= options.connections;
  const auto connection = std::make_shared<Connection>(std::move(socket), all);
  all.open.insert(connection);
  {
    const std::lock_guard lock(mutex);
    empty = false;
  }
  if (too_many) {
    connection->turn_away();
  } else {
    connection->start();
  }
}

void Server::Core::connection_closed() {
  if (all.open.empty()) {
    const std::lock_guard lock(mutex);
    empty = true;
    emptied.notify_all();
  }
  if (!full || all.draining) return;
  full = false;
  accept();
}

// malloc keeps what large requests have freed between smaller blocks.
void Server::Core::return_memory() {
  large = all.held.take_peak() >= kLarge || large;
  if (large && all.held.held() < kLarge) {
    malloc_trim(0);
    large = false;
  }
  idle.expires_after(kLookForIdle);
  idle.async_wait([this](error_code stopped) {
    if (!stopped) return_memory();
  });
}

Server::Server(Router router, ServerOptions options)
    : core_(std::make_unique<Core>(std::move(router), std::move(options))) {}

Server::~Server() { stop(std::chrono::milliseconds(0)); }

uint16_t Server::port() const { return core_->listener.port(); }

void Server::replace_routes(Router router) {
  asio::post(core_->context, [core = core_.get(), router = std::move(router)]() mutable {
    core->use(std::move(router));
  });
}

void Server::start() {
  core_->accept();
  core_->return_memory();
  core_->thread = std::thread([core = core_.get()] { core->context.run(); });
}

void Server::stop(std::chrono::milliseconds grace) {
  Core& core = *core_;
  if (!core.thread.joinable()) return;
  core.all.draining = true;
  asio::post(core.context, [&core] {
    core.listener.close();
    core.pause.cancel();
    core.idle.cancel();
    const auto open = core.all.open;
    for (const auto& connection : open) connection->drain();
  });
  {
    std::unique_lock lock(core.mutex);
    core.emptied.wait_for(lock, grace, [&core] { return core.empty; });
  }
  asio::post(core.context, [&core] {
    const auto open = core.all.open;
    for (const auto& connection : open) connection->close();
    core.context.stop();
  });
  core.thread.join();
  core.pool.stop();
}

}  // namespace fovea::http
