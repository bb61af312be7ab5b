"""Selects the compiled handlers of records, if they were built. Without them the dispatcher serves every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.kernel_choice import load_compiled
from barnabas.protocol.messages.api_key import ApiKey

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.handlers.data.fetch import FetchHandler
    from barnabas.broker.handlers.data.kernels._fetch import FetchKernel
    from barnabas.broker.handlers.data.kernels._produce import ProduceKernel
    from barnabas.broker.handlers.data.produce import ProduceHandler
    from barnabas.broker.network.kernels._frames import FrameRun
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import BrokerProbes
    from barnabas.broker.storage.services.clock import Clock


def frame_kernels(
    produce: ProduceHandler,
    fetch: FetchHandler,
    partitions: PartitionRegistry,
    clock: Clock,
    probes: BrokerProbes,
    loop: asyncio.AbstractEventLoop,
) -> FrameRun | None:
    """Return the compiled handlers as the dispatcher uses them, None where there are none."""
    compiled = load_compiled(_compiled)
    if compiled is None:
        return None
    produce_kernel, fetch_kernel, frame_run = compiled
    appends = produce_kernel(probes.api(ApiKey.PRODUCE.label), partitions, clock, produce)
    reads = fetch_kernel(
        probes.api(ApiKey.FETCH.label), partitions, probes, loop, fetch.fetch_max_bytes, fetch.answer_now
    )
    fetch.use_kernel(reads)
    return frame_run({ApiKey.PRODUCE: appends, ApiKey.FETCH: reads})


def _compiled() -> tuple[type[ProduceKernel], type[FetchKernel], type[FrameRun]]:
    from barnabas.broker.handlers.data.kernels._fetch import FetchKernel
    from barnabas.broker.handlers.data.kernels._produce import ProduceKernel
    from barnabas.broker.network.kernels._frames import FrameRun

    return ProduceKernel, FetchKernel, FrameRun
