import asyncio
from collections.abc import Callable

from barnabas.broker.handlers.data.fetch_session import FetchSession
from barnabas.broker.handlers.data.fetch_session_cache import FetchSessionCache
from barnabas.broker.network.kernels._frames import FrameKernel
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import ApiProbe, BrokerProbes
from barnabas.protocol.messages.data.fetch import FetchRequest, FetchResponse

class FetchKernel(FrameKernel):
    def __init__(
        self,
        probe: ApiProbe,
        registry: PartitionRegistry,
        probes: BrokerProbes,
        loop: asyncio.AbstractEventLoop,
        fetch_max_bytes: int,
        finish: Callable[[Session, FetchRequest], FetchResponse],
    ) -> None: ...
    def use_sessions(
        self,
        cache: FetchSessionCache,
        finish: Callable[[FetchSession, int, Session, FetchRequest], FetchResponse],
    ) -> None: ...
    def answer_all(self) -> None: ...
