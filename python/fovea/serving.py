"""The server of `fovea serve`, in threads of this process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from . import _fovea
from ._docs import documented
from ._hub import resolved
from .model import Model

if TYPE_CHECKING:
    from typing import Unpack

    from ._hub import Path
    from ._options import EngineOptions


class Server:
    """A running server; `with` stops it at the end."""

    def __init__(self, server: _fovea.Server, models: list[str]) -> None:
        self._server = server
        self.models = models
        self.url = server.url
        self.port = server.port

    def stop(self, grace: float = 30.0) -> None:
        """Accepts no more requests, and waits `grace` seconds for those that run."""
        self._server.stop(grace)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Server({self.url}, {', '.join(self.models)})"


@documented("engine")
def serve(
    models: Model | Path | Sequence[Model | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    api_key: str | None = None,
    insecure: bool = False,
    **options: Unpack[EngineOptions],
) -> Server:
    """Serves models over HTTP with OpenAI's API (docs/serve.md), and returns at once.

    models: models that are open, whose weights and engine the server shares, or paths. port: 0 =
    any free one, see Server.url. An address that other machines reach needs api_key or insecure.
    """
    given = [models] if isinstance(models, (Model, str, os.PathLike)) else list(models)
    if not given:
        raise _fovea.InvalidArgument("models: none; expected at least one")
    if host not in ("127.0.0.1", "localhost", "::1") and not api_key and not insecure:
        raise _fovea.InvalidArgument(
            f"host: {host} is reachable from other machines; expected api_key, or insecure=True"
        )
    services = [_service_of(model, options) for model in given]
    for other in services[1:]:
        services[0].add(other)
    keys = [api_key] if api_key else []
    return Server(_fovea.Server(services[0], host, port, keys), services[0].models)


def _service_of(model: Model | Path, options: EngineOptions) -> _fovea.Service:
    path = model.path if isinstance(model, Model) else resolved(model)
    opened = model._model if isinstance(model, Model) else None
    template = model._chat_template if isinstance(model, Model) else ""
    name = os.path.basename(os.path.normpath(path))
    return _fovea.Service.open(path, name, opened, template, "stored", **options)
