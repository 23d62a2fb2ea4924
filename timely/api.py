"""The names that programs use. The package `timely` imports this module when one of them is first used there."""

from timely.config import Config
from timely.data.container import Columns, rowwise
from timely.dataflow.activator import Activator
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.capability_set import CapabilitySet
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.notificator import FrontierNotificator, Notificator
from timely.dataflow.operator import Operator
from timely.dataflow.operators.feedback import LoopHandle
from timely.dataflow.operators.generic import source
from timely.dataflow.operators.input import Input, new_input
from timely.dataflow.operators.log_stream import log_stream
from timely.dataflow.operators.replay import replay_into
from timely.dataflow.operators.unordered_input import UnorderedInput, new_unordered_input
from timely.dataflow.pact import Broadcast, Exchange, Gather, Pipeline
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.probe import Probe
from timely.dataflow.routing import hash_columns
from timely.dataflow.stream import Scope, Stream
from timely.errors import TimelyError
from timely.order import Time
from timely.progress.antichain import Antichain
from timely.progress.summary import PathSummary
from timely.run.execute import example, execute, execute_directly, execute_from_args
from timely.run.failure import fail
from timely.synchronization.barrier import Barrier
from timely.synchronization.sequencer import Sequencer
from timely.uncopied import refuse_copies
from timely.worker.worker import Worker

__all__ = [
    "Activator",
    "Antichain",
    "Barrier",
    "Broadcast",
    "Capability",
    "CapabilitySet",
    "Columns",
    "Config",
    "Exchange",
    "FrontierNotificator",
    "Gather",
    "Input",
    "InputPort",
    "LoopHandle",
    "Notificator",
    "OperatorBuilder",
    "OutputPort",
    "PathSummary",
    "Pipeline",
    "Probe",
    "Scope",
    "Sequencer",
    "Stream",
    "Time",
    "TimelyError",
    "UnorderedInput",
    "Worker",
    "example",
    "execute",
    "execute_directly",
    "execute_from_args",
    "fail",
    "hash_columns",
    "log_stream",
    "new_input",
    "new_unordered_input",
    "replay_into",
    "rowwise",
    "source",
]

refuse_copies(Worker, Dataflow, Scope, Stream, Probe, Operator, OperatorBuilder, InputPort, OutputPort, Activator)
refuse_copies(Input, UnorderedInput, LoopHandle, Capability, CapabilitySet, Notificator, FrontierNotificator)
refuse_copies(Barrier, Sequencer)
