from barnabas.broker.handlers.data.produce import ProduceHandler
from barnabas.broker.network.kernels._frames import FrameKernel
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import ApiProbe
from barnabas.broker.storage.services.clock import Clock

class ProduceKernel(FrameKernel):
    def __init__(self, probe: ApiProbe, registry: PartitionRegistry, clock: Clock, handler: ProduceHandler) -> None: ...
