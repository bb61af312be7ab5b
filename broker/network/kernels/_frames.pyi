from collections.abc import Callable, Mapping

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.dispatch import Handler
from barnabas.broker.network.response_frame import LateResponse, ResponseFrame
from barnabas.broker.network.session import Session
from barnabas.broker.probes import ApiProbe

PlainFrames = tuple[int, bytes | None, ResponseFrame | Deferred[LateResponse] | None, Handler | None]
"""Position after the served frames, their responses, the outcome of the last one, the handler that ends the next."""

class FrameKernel:
    probe: ApiProbe
    def __init__(self, probe: ApiProbe) -> None: ...

class FrameRun:
    def __init__(self, kernels: Mapping[int, FrameKernel]) -> None: ...
    def use(self, dispatch: Callable[..., ResponseFrame | Deferred[LateResponse] | None]) -> None: ...
    def serve(
        self, session: Session, view: memoryview, start: int, end: int, max_frame_bytes: int, seconds: float
    ) -> PlainFrames | None: ...
