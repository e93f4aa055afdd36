#pragma once

#include <cstddef>

#include "serve/routes/api.h"

namespace fovea::serve {

// Returns the routes of all protocols, of the server's state and of its page. `most_chat`: maximum
// bytes of a chat with images, unless the server accepts more. `api` must outlive the router.
http::Router all_routes(Api& api, size_t most_chat = 0);

}  // namespace fovea::serve
