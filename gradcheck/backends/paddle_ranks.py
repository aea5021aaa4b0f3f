"""Ranks on the installed Paddle: one process per rank; collectives are computed in the parent
process.

Paddle's own backward is not thread-safe, and on the CPU it lacks half of the collectives that
layers call. So a rank is a fork of this process in which the names of `paddle.distributed` are
those of the bundled engine's ranks, which send arrays to the parent process; there the calls are
matched as the engine matches its own, so that the same mistakes are found.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import signature
from multiprocessing.connection import Connection, Pipe, wait
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from gradcheck.backends.base import Backend, Tensor, WorldRanks
from pylayer.distributed import communication, group, rank, topology
from pylayer.distributed import process_group as process_group  # groups have it
from pylayer.distributed.call import MAX, Call, CommunicationError
from pylayer.distributed.experts import from_experts, to_experts
from pylayer.distributed.rank import Rank, equal
from pylayer.distributed.rendezvous import Rendezvous
from pylayer.distributed.world import deadlock_errors, first_error
from pylayer.tensor.tensor import Tensor as EngineTensor


class RankOfProcess(Rank):
    """A rank whose calls are answered by the process that it was forked from.

    Args:
        backend: whose Tensors it exchanges.
        line: the connection to that process.
    """

    def __init__(self, number: int, size: int, backend: Backend, line: Connection) -> None:
        super().__init__(number, size, Rendezvous())
        self.backend, self.line = backend, line
        self.world: Any = self  # a world exists
        self.tensor_type = backend.paddle.Tensor
        self.open: dict[int, Call] = {}
        self.count = 0
        self.failed: CommunicationError | None = None
        """The last error of a call."""

    def original_error(self, error: BaseException) -> BaseException:
        """The given error, or the call's original error if Paddle kept only its text, as it does
        for every exception in a backward.
        """
        return self.failed if self.failed is not None and str(self.failed) in str(error) else error

    def issue(self, call: Call) -> None:
        self.count += 1
        call.number = self.count
        self.open[call.number] = call
        self.line.send(("call", call))

    def wait(self, call: Call) -> list[Any]:
        if not call.done:
            self.line.send(("waits", call.number))
        while not call.done:
            self.read_answer(self.line.recv())
        if call.error is not None:
            raise self.failing(call.error)
        return call.results

    def failing(self, error: CommunicationError) -> CommunicationError:
        self.failed = error
        return error

    def read_answer(self, message: tuple[Any, ...]) -> None:
        """Store the answer to a call."""
        _, number, results, error = message
        call = self.open.pop(number)
        call.results, call.error, call.done = results, error, True

    def next_request(self) -> tuple[str, tuple[Any, ...]]:
        """The next method to run, with its arguments; answers that were not waited for are read
        first.
        """
        while (message := self.line.recv())[0] == "answer":
            self.read_answer(message)
        return message[1], message[2]

    def copy_values(self, tensor: Any) -> Any:
        return self.backend.array(tensor).copy()

    def write_result(self, tensor: Any, result: Any) -> None:
        value = self.backend.tensor(result.reshape(tuple(tensor.shape)), None, stop_gradient=True)
        with self.backend.paddle.no_grad():
            tensor.set_value(value)

    def is_unchanged(self, tensor: Any, values: Any) -> bool:
        return equal(self.backend.array(tensor), values)

    def undefined_like(self, values: Any) -> Any:
        return values if values.dtype.kind in "iub" else np.full_like(values, np.nan)

    def new_tensor(self, result: Any) -> Any:
        return self.backend.tensor(result, None, stop_gradient=True)

    def join_results(self, results: list[Any]) -> Any:
        return np.concatenate(results) if results[0].ndim else np.stack(results)


class RanksOfProcesses(WorldRanks):
    """The ranks of a world, each a process with the object that `work` makes for it.

    Raises:
        Exception: the exception of a rank.
        CommunicationError: their calls do not fit together.
        RuntimeError: a rank died.
    """

    def __init__(
        self,
        backend: Backend,
        size: int,
        degrees: Mapping[str, int],
        same_random: bool,
        work: Callable[[int], Any],
    ) -> None:
        self.rendezvous = Rendezvous()
        self.lines: list[Connection] = []
        self.pids: list[int] = []
        self.owner = os.getpid()
        self.deaths: dict[int, str] = {}
        """How the process of a rank ended unexpectedly."""
        for number in range(size):
            ours, theirs = Pipe()
            pid = os.fork()
            if not pid:
                # Objects left by programs are not collected: at exit they would wait for threads
                # that the fork does not have.
                gc.freeze()
                for line in (ours, *self.lines):
                    line.close()
                serve(RankOfProcess(number, size, backend, theirs), degrees, same_random, work)
            theirs.close()
            self.lines.append(ours)
            self.pids.append(pid)
        self.collect_results()

    def close(self) -> None:
        """End the processes."""
        if os.getpid() == self.owner:
            for pid, line in zip(self.pids, self.lines, strict=False):
                line.close()
                with suppress(ProcessLookupError, ChildProcessError):  # the process is already dead
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            self.pids.clear()

    __del__ = close

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        for number, rank_arguments in enumerate(arguments):
            self.send(number, "do", method, rank_arguments)
        return self.collect_results()

    def send(self, number: int, *message: Any) -> None:
        """Send to a rank; a dead rank is detected when it does not answer."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.lines[number].send(message)

    def call_outside(self, function: Callable[[], Any]) -> Any:
        return function()

    def collect_results(self) -> list[Any]:
        """Results of all ranks; until they have ended, their calls are answered."""
        size, running = len(self.lines), {line: k for k, line in enumerate(self.lines)}
        results: dict[int, Any] = {}
        errors: dict[int, BaseException] = {}
        waiting: dict[int, Call] = {}
        calls: dict[tuple[int, int], Call] = {}
        while running:
            for line in wait([*running]):
                assert isinstance(line, Connection)
                number = running[line]
                kind, value = self.receive(number)
                if kind == "call":
                    calls[number, value.number] = value
                    value.inputs = [
                        EngineTensor(item) if isinstance(item, np.ndarray) else item
                        for item in value.inputs
                    ]
                    self.answer(self.rendezvous.add(value), waiting)
                elif kind == "waits":
                    if not calls[number, value].done:
                        waiting[number] = calls[number, value]
                else:
                    (errors if kind == "error" else results)[number] = value
                    del running[line]
            if waiting and len(waiting) == len(running):
                for k, stop in deadlock_errors(waiting, errors, size).items():
                    waiting[k].error, waiting[k].done = stop, True
                self.answer(list(waiting.values()), waiting)
        if errors:
            self.rendezvous.clear()
            raise first_error(errors, size)
        return [results[number] for number in range(size)]

    def answer(self, calls: Sequence[Call], waiting: dict[int, Call]) -> None:
        """Send the results of calls to the ranks that made them."""
        for call in calls:
            if waiting.get(call.rank) is call:
                del waiting[call.rank]
            results = [r.array if isinstance(r, EngineTensor) else r for r in call.results]
            self.send(call.rank, "answer", call.number, results, call.error)

    def receive(self, number: int) -> tuple[str, Any]:
        """A rank's next message; a message about its end if the rank has died."""
        try:
            return self.lines[number].recv()  # type: ignore[no-any-return]
        except (EOFError, ConnectionResetError):
            if number not in self.deaths:
                status = os.waitstatus_to_exitcode(os.waitpid(self.pids[number], 0)[1])
                how = (
                    f"died of {signal.Signals(-status).name}"
                    if status < 0
                    else f"ended with status {status}"
                )
                self.deaths[number] = how
            error = RuntimeError(f"the process of rank {number} {self.deaths[number]}")
            error.frames_of_rank = []  # type: ignore[attr-defined]
            return "error", error


# ------------------------------ in the process of a rank
def serve(
    this_rank: RankOfProcess,
    degrees: Mapping[str, int],
    same_random: bool,
    work: Callable[[int], Any],
) -> NoReturn:
    """Be a rank: handle requests until there are no more."""
    status = 1
    try:
        rank.current_rank.set(this_rank)
        backend = this_rank.backend
        replace_communication(backend.paddle)
        if not same_random:
            last_seed = int(backend.paddle.framework.core.default_cpu_generator().initial_seed())
            backend.paddle.seed(last_seed + this_rank.number)
        kind, result, worker = attempt(this_rank, lambda: begin(this_rank, degrees, work))
        this_rank.line.send((kind, result))
        while True:
            method, arguments = this_rank.next_request()
            reply = attempt(this_rank, lambda m=method, a=arguments: getattr(worker, m)(*a))  # type: ignore[misc]
            this_rank.line.send(reply[:2])
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def begin(this_rank: RankOfProcess, degrees: Mapping[str, int], work: Callable[[int], Any]) -> Any:
    """Prepare the rank's process."""
    topology.lay_out(degrees)
    if degrees:
        fleet = this_rank.backend.paddle.distributed.fleet
        fleet.fleet._hcg = fleet.base.topology._HYBRID_PARALLEL_GROUP = (
            topology.get_hybrid_communicate_group()
        )
    return work(this_rank.number)


def attempt(this_rank: RankOfProcess, function: Callable[[], Any]) -> tuple[str, Any, Any]:
    """The answer to a call, with its result or error as far as either can be pickled; and the
    result itself.

    An object that belongs only to the rank stays here.
    """
    this_rank.failed = None
    try:
        result = function()
    except BaseException as error:
        return "error", sendable(rank.current().original_error(error)), None
    return "done", result if isinstance(result, (list, type(None))) else None, result


def sendable(error: BaseException) -> BaseException:
    """An error that can be sent to another process, with its frames as `frames_of_rank`."""
    frames = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    with suppress(Exception):  # it may take no attributes
        error.frames_of_rank = frames  # type: ignore[attr-defined]
    try:
        unpickled = pickle.loads(pickle.dumps(error))
        assert type(unpickled) is type(error)
    except Exception:
        substitute = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            substitute.add_note(note)
        substitute.frames_of_rank = frames  # type: ignore[attr-defined]
        return substitute
    return error


FUNCTIONS = (
    "P2POp all_gather all_gather_object all_reduce alltoall alltoall_single barrier "
    "batch_isend_irecv broadcast broadcast_object_list gather irecv isend new_group recv reduce "
    "reduce_scatter scatter scatter_object_list send wait"
)
GROUPS = (
    "Group ParallelEnv destroy_process_group get_group get_rank get_world_size init_parallel_env "
    "is_initialized"
)
LAYOUT = (
    "CommunicateTopology DistributedStrategy HybridCommunicateGroup get_hybrid_communicate_group "
    "init"
)


def replace_communication(paddle: ModuleType) -> None:
    """Replace Paddle's communication functions by the rank's, wherever they were imported."""
    distributed = paddle.distributed
    stream, of_groups = distributed.communication.stream, distributed.communication.group
    places = (distributed, of_groups, distributed.parallel, distributed.collective)
    mp_ops = distributed.fleet.layers.mpu.mp_ops
    rows: list[tuple[Any, str, Any]] = []
    for place in (*places, stream):
        rows += [(place, name, getattr(communication, name)) for name in FUNCTIONS.split()]
    for place in places:
        rows += [(place, name, getattr(group, name)) for name in GROUPS.split()]
    rows += [(distributed.fleet, name, getattr(topology, name)) for name in LAYOUT.split()]
    rows += [
        (stream, "alltoall_single", communication.stream_alltoall_single),
        (of_groups, "_get_global_group", group.world_group),
        (distributed.collective, "_get_default_group", group.world_group),
        (mp_ops, "_get_reduce_op", keep_reduce_name(mp_ops._get_reduce_op)),
    ]
    if next(iter(signature(distributed.alltoall).parameters)).startswith("in_"):
        for name in ("alltoall", "alltoall_single"):
            rows.append((distributed, name, input_first(getattr(communication, name))))
    # by the id of the object in Paddle
    ours = {id(getattr(place, name)): mine for place, name, mine in rows if hasattr(place, name)}
    vars(paddle._C_ops).update(kernels(paddle))
    vars(paddle._legacy_C_ops).update(legacy_kernels(paddle))
    distributed.fleet.fleet.get_hybrid_communicate_group = topology.get_hybrid_communicate_group
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in ours:
                setattr(module, name, ours[id(value)])


def keep_reduce_name(get_reduce_op: Callable[..., Any]) -> Callable[..., Any]:
    """Return the name of a reduction unchanged; replaces Paddle's function, which translates it."""

    def check_name(*args: Any) -> Any:
        get_reduce_op(*args)
        return args[0]

    return check_name


def input_first(exchange: Callable[..., Any]) -> Callable[..., Any]:
    """An exchange as before 3.0: sent Tensors come first, then received ones."""

    def exchange_input_first(*args: Any, **kwargs: Any) -> Any:
        return exchange(*args[1::-1], *args[2:], **kwargs)

    return exchange_input_first


Kernels = dict[str, Callable[..., Any]]
"""Python functions in place of kernels, by the operator's name."""


def kernels(paddle: ModuleType) -> Kernels:
    """Replacements for functions of ``paddle._C_ops``."""

    def sum_over_ranks(tensor: Tensor, members: group.Group | None) -> Tensor:
        total = paddle.assign(tensor)
        communication.all_reduce(total, group=members)
        return total

    def reduce_in_place(tensor: Tensor, ring: int, op: int, *rest: Any) -> Tensor:
        communication.all_reduce(tensor, op, group.get_group(ring))
        return tensor

    return {
        "c_identity": lambda tensor, *rest: paddle.assign(tensor),
        "c_split": lambda tensor, rank, count, *rest: paddle.assign(
            paddle.split(tensor, count, -1)[rank]
        ),
        "c_concat": joined_over_ranks(paddle).apply,
        "mp_allreduce_sum": lambda tensor, ring, *rest: sum_over_ranks(
            tensor, group.get_group(ring)
        ),
        "all_reduce_": reduce_in_place,
        "c_softmax_with_cross_entropy": cross_entropy_over_ranks(paddle).apply,
        "global_scatter": rows_to_experts(paddle, to_experts, from_experts),
        "global_gather": rows_to_experts(paddle, from_experts, to_experts),
    }


LEGACY = {
    "c_identity": (),
    "c_split": ("rank", "nranks"),
    "c_concat": ("rank", "nranks", "ring_id"),
    "global_scatter": ("ring_id",),
    "global_gather": ("ring_id",),
    "c_softmax_with_cross_entropy": ("ignore_index", "ring_id", "rank", "nranks"),
}
"""Functions of ``paddle._legacy_C_ops``: the attributes in the order in which those of
``paddle._C_ops`` take them.
"""


def legacy_kernels(paddle: ModuleType) -> Kernels:
    """Replacements for functions of ``paddle._legacy_C_ops``."""
    newer = kernels(paddle)
    return {name: by_names(newer[name], attributes) for name, attributes in LEGACY.items()}


def by_names(kernel: Callable[..., Any], attributes: Sequence[str]) -> Callable[..., Any]:
    """A kernel that takes Tensors, then attributes as alternating names and values."""

    def call_by_names(*args: Any) -> Any:
        count = next((k for k, arg in enumerate(args) if isinstance(arg, str)), len(args))
        values = dict(zip(args[count::2], args[count + 1 :: 2], strict=True))
        return kernel(*args[:count], *(values[name] for name in attributes))

    return call_by_names


def rows_to_experts(
    paddle: ModuleType, exchange: Callable[..., Tensor], exchange_back: Callable[..., Tensor]
) -> Any:
    """A kernel that exchanges rows by `exchange`; its gradient does by `exchange_back`."""

    class RowsToExperts(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Tensor, *sizes: Any) -> Tensor:
            ctx.sizes = sizes
            return exchange(paddle, x, *sizes)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Tensor:
            return exchange_back(paddle, dy, *ctx.sizes)

    def kernel(x: Tensor, local_count: Tensor, global_count: Tensor, ring: int) -> Tensor:
        return RowsToExperts.apply(
            x, local_count.tolist(), global_count.tolist(), group.get_group(ring)
        )

    return kernel


def joined_over_ranks(paddle: ModuleType) -> Any:
    """A layer that joins the parts of all ranks along the last axis; its gradient is the rank's own
    part.
    """

    class JoinedOverRanks(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(
            ctx: Any, shard: Tensor, rank: int, count: int, ring: int, *rest: Any
        ) -> Tensor:
            ctx.rank, ctx.count = rank, count
            shards: list[Tensor] = []
            communication.all_gather(shards, shard, group.get_group(ring))
            return paddle.concat(shards, -1)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Tensor:
            return paddle.assign(paddle.split(dy, ctx.count, -1)[ctx.rank])

    return JoinedOverRanks


def cross_entropy_over_ranks(paddle: ModuleType) -> Any:
    """A layer that returns the softmax of logits whose classes are spread over ranks, and the loss
    of each row.

    Each rank has an equal number n of classes: rank k of the group has those from k·n on. A row
    whose label is to be ignored has the loss 0. The softmax has no gradient, as in Paddle.
    """

    class CrossEntropyOverRanks(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(
            ctx: Any,
            logits: Tensor,
            label: Tensor,
            ignore_index: int,
            ring: int,
            rank: int,
            count: int,
        ) -> tuple[Tensor, Tensor]:
            members, classes = group.get_group(ring), logits.shape[-1]
            largest = logits.max(-1, keepdim=True)
            communication.all_reduce(largest, MAX, members)
            exponentials = paddle.exp(logits - largest)
            total = exponentials.sum(-1, keepdim=True)
            communication.all_reduce(total, group=members)
            ctx.one_hot = (
                label == paddle.arange(rank * classes, (rank + 1) * classes, dtype=label.dtype)
            ).astype(logits.dtype)
            of_label = ((logits - largest) * ctx.one_hot).sum(-1, keepdim=True)
            communication.all_reduce(of_label, group=members)
            ctx.counts = (label != ignore_index).astype(logits.dtype)
            ctx.softmax = exponentials / total
            ctx.mark_non_differentiable(softmax := paddle.assign(ctx.softmax))
            return softmax, (paddle.log(total) - of_label) * ctx.counts

        @staticmethod
        def backward(ctx: Any, of_softmax: Tensor, of_loss: Tensor) -> tuple[Tensor, None]:
            return (ctx.softmax - ctx.one_hot) * of_loss * ctx.counts, None

    return CrossEntropyOverRanks
