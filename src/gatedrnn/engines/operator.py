"""A native engine's scan inside torch, written once for every such engine: operators, autograd, second derivatives.

A native engine brings four functions: forward and backward, and the room for the results of each, which is all that
torch.compile and torch.export need to know. From these come two operators of torch.library, for code that intercepts
calls, and the same as a plain autograd function: an operator costs as much as a short scan.

The second derivative is the first one once more, by autograd through the reference engine: right, and slower.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.autograd import Function
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _disable_current_modes


class Options(NamedTuple):
    """What describes a scan beside its tensors."""

    #: Cell, gate and their numbers as the engine writes them, and the names of the weights.
    kernel: str
    reverse: bool
    #: Keep what the backward needs.
    keep: bool
    recompute: bool
    #: Give the memory of every step as well.
    collect: bool


class Results(NamedTuple):
    """What a scan computes."""

    output: Tensor
    #: The final states.
    finals: list[Tensor]
    #: Of every step; None unless it was asked for.
    memory: Tensor | None
    #: What the backward needs; None if nothing was to be kept.
    kept: Tensor | None
    #: The number of threads that the layout of ``kept`` belongs to.
    threads: int


class Forward(Protocol):
    """The scan."""

    def __call__(
        self,
        input: Tensor,
        state: Sequence[Tensor],
        weights: Sequence[Tensor],
        lengths: Tensor | None,
        batch_sizes: Tensor | None,
        options: Options,
    ) -> Results: ...


class Backward(Protocol):
    """The gradients of input (empty unless input_gradient), state and weights.

    gradients are those of output, the final states and, where the cell has one, the memory of every step; None where
    there is none.
    """

    def __call__(
        self,
        gradients: Sequence[Tensor | None],
        input: Tensor,
        state: Sequence[Tensor],
        weights: Sequence[Tensor],
        lengths: Tensor | None,
        batch_sizes: Tensor | None,
        output: Tensor,
        kept: Tensor,
        threads: int,
        kernel: str,
        reverse: bool,
        recompute: bool,
        input_gradient: bool,
    ) -> list[Tensor]: ...


#: (input, state, weights, lengths, batch_sizes, kernel, reverse) -> output, the final states and, where the cell has
#: one, the memory of every step, by the reference engine.
Reference = Callable[..., list[Tensor]]


class Operator:
    """The scan of a native engine as ``gatedrnn::<name>`` and ``gatedrnn::<name>_backward``, and without them."""

    def __init__(
        self,
        name: str,
        forward: Forward,
        backward: Backward,
        results: Forward,
        gradients: Callable[..., list[Tensor]],
        reference: Reference,
    ) -> None:
        self.forward, self.backward, self.reference = forward, backward, reference
        self.scan = torch.library.custom_op(f"gatedrnn::{name}", _listing(forward), mutates_args=())
        self.scan_backward = torch.library.custom_op(f"gatedrnn::{name}_backward", _listed(backward), mutates_args=())
        self.scan.register_fake(_on_one_device(_listing(results)))
        self.scan_backward.register_fake(_on_one_device(gradients))
        self._batched = torch.library.Library("gatedrnn", "IMPL")
        self._batched.impl(f"{name}_backward", _one_by_one(self.scan_backward), "Batched")
        self.scan.register_autograd(self._first, setup_context=self._save_scan)
        self.scan_backward.register_autograd(self._second, setup_context=self._save_backward)

    def without_checks(self, forward: Forward) -> Operator:
        """The same with a scan that takes its arguments as they are, for :meth:`run` alone."""
        other = copy.copy(self)
        other.forward = forward
        return other

    def run(
        self,
        input: Tensor,
        state: Sequence[Tensor],
        weights: Sequence[Tensor],
        lengths: Tensor | None,
        batch_sizes: Tensor | None,
        options: Options,
        alone: bool,
    ) -> tuple[Tensor, Sequence[Tensor], Tensor | None]:
        """Output, the final states and the memory of every step, if asked for.

        ``alone``: the tensors are plain and nothing intercepts the call, so that the operator can be bypassed.
        """
        if not alone:
            results = self.scan(input, state, weights, lengths, batch_sizes, *options)
            return results[0], results[1 : 1 + len(state)], results[-3] if options.collect else None
        if not options.keep:
            output, finals, memory, _, _ = self.forward(input, state, weights, lengths, batch_sizes, options)
            return output, finals, memory
        # Past Function.apply, which looks through all arguments for wrappers of torch.func: these are plain.
        found = super(Function, _Scan).apply(self, options, lengths, batch_sizes, len(state), input, *state, *weights)  # type: ignore[no-untyped-call]
        return found[0], found[1 : 1 + len(state)], found[-1] if options.collect else None

    @staticmethod
    def _save_scan(ctx: Any, inputs: tuple[Any, ...], output: Sequence[Tensor]) -> None:
        input, state, weights, lengths, batch_sizes, *options = inputs
        ctx.options = Options(*options)
        if not ctx.options.keep:  # a program exported for inference may hold parameters that ask for a gradient
            return
        _save(ctx, [input], state, weights, _there(lengths), _there(batch_sizes), [output[0], *output[-2:]])

    def _first(self, ctx: Any, gradients: Sequence[Tensor | None]) -> tuple[Any, ...]:
        if not ctx.options.keep:
            raise RuntimeError(
                "the scan was called with keep=False, so it has no gradient; call it with keep=True, "
                "and export a program for training with gradients enabled"
            )
        (input,), state, weights, lengths, batch_sizes, others = _restored(ctx)
        options, wanted = ctx.options, ctx.needs_input_grad
        of_input, *rest = self.scan_backward(
            _given(gradients[:-2], input), input, state, weights, _only(lengths), _only(batch_sizes), *others,
            options.kernel, options.reverse, options.recompute, wanted[0],
        )  # fmt: skip
        of_state, of_weights = rest[: len(state)], rest[len(state) :]
        return (
            of_input if wanted[0] else None,
            [g if need else None for g, need in zip(of_state, wanted[1], strict=True)],
            [g if need else None for g, need in zip(of_weights, wanted[2], strict=True)],
            *(None,) * (2 + len(options)),
        )

    @staticmethod
    def _save_backward(ctx: Any, inputs: tuple[Any, ...], output: Sequence[Tensor]) -> None:
        gradients, input, state, weights, lengths, batch_sizes, _, _, _, ctx.kernel, ctx.reverse, _, _ = inputs
        ctx.kinds = [_kind(tensor) for tensor in (*gradients, input, *state, *weights)]
        _save(ctx, gradients, [input], state, weights, _there(lengths), _there(batch_sizes))

    def _second(self, ctx: Any, outer: Sequence[Tensor | None]) -> tuple[Any, ...]:
        gradients, inputs, state, weights, lengths, batch_sizes = _restored(ctx)
        saved = [*gradients, *inputs, *state, *weights]
        for tensor, kind in zip(saved, ctx.kinds, strict=False):
            if _kind(tensor) != kind:
                raise RuntimeError(f"size mismatch for a saved tensor: expected {kind}, got {_kind(tensor)}")
        create_graph = torch.is_grad_enabled()
        with torch.enable_grad():
            # Views, so that a derivative of any order finds its way to the tensors themselves.
            views = [t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in saved]
            given, (input, *rest) = views[: len(gradients)], views[len(gradients) :]
            results = self.reference(
                input,
                rest[: len(state)],
                rest[len(state) :],
                _only(lengths),
                _only(batch_sizes),
                ctx.kernel,
                ctx.reverse,
            )
            first = _derivative(results, given, [input, *rest], create_graph=True)
            second = _derivative(first, outer, views, create_graph)
        of_gradients, (of_input, *of_rest) = second[: len(gradients)], second[len(gradients) :]
        return of_gradients, of_input, of_rest[: len(state)], of_rest[len(state) :], *(None,) * 9


class _Scan(Function):
    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, operator, options, lengths, batch_sizes, states, input, *tensors
    ) -> tuple[Tensor, ...]:
        state, weights = tensors[:states], tensors[states:]
        found = operator.forward(input, state, weights, lengths, batch_sizes, options)
        ctx.operator, ctx.options, ctx.threads = operator, options, found.threads
        _save(ctx, [input], state, weights, _there(lengths), _there(batch_sizes), [found.output, found.kept])
        return (found.output, *found.finals) if found.memory is None else (found.output, *found.finals, found.memory)

    @staticmethod
    def backward(ctx, *gradients):  # type: ignore[no-untyped-def]
        saved = ctx.saved_tensors
        (input,), state, weights, lengths, batch_sizes, (output, kept) = _restored(ctx, saved)
        wanted, options = ctx.needs_input_grad[5:], ctx.options
        if not options.collect:
            gradients = (*gradients, None)  # of the memory
        alone = not (torch.is_grad_enabled() or watched())
        if alone and all_plain(saved) and all_plain(g for g in gradients if g is not None):
            function, given, threads = ctx.operator.backward, list(gradients), ctx.threads
        else:
            function, given, threads = ctx.operator.scan_backward, _given(gradients, input), _number(ctx.threads, input)
        computed = function(
            given, input, state, weights, _only(lengths), _only(batch_sizes), output, kept, threads,
            options.kernel, options.reverse, options.recompute, wanted[0],
        )  # fmt: skip
        if not all(wanted):
            return *(None,) * 5, *(g if need else None for g, need in zip(computed, wanted, strict=True))
        return None, None, None, None, None, *computed


def watched() -> bool:
    """Whether torch compiles, traces or otherwise intercepts what is called."""
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or (torch._C._len_torch_function_stack() > 0 and not _only_the_cpu_as_default())
        or torch._C._get_tracing_state() is not None
    )


def _only_the_cpu_as_default() -> bool:
    """Whether all that intercepts functions is torch.set_default_device("cpu"), which changes nothing on the CPU."""
    if torch._C._len_torch_function_stack() > 1:
        return False
    mode = torch._C._get_function_stack_at(0)
    return type(mode) is DeviceContext and mode.device.type == "cpu"


def all_plain(tensors: Iterable[Tensor]) -> bool:
    """Whether the memory of all holds their values: no negative view, zero tensor or wrapper of any kind."""
    return _PLAIN.issuperset([_dispatch_keys(tensor).raw_repr() for tensor in tensors])


_dispatch_keys = torch._C._dispatch_keys


def _plain_keys() -> frozenset[int]:
    """The dispatch keys of such tensors on the CPU, with and without autograd."""
    found = []
    with _disable_current_modes():  # the package may be imported under a mode that makes other tensors
        for inference in (False, True):
            with torch.inference_mode(inference):
                found.append(_dispatch_keys(torch.empty(0, device="cpu")).raw_repr())
    return frozenset(found)


_PLAIN = _plain_keys()


def _save(ctx: Any, *groups: Sequence[Tensor]) -> None:
    ctx.sizes = [len(group) for group in groups]
    ctx.save_for_backward(*(tensor for group in groups for tensor in group))
    ctx.set_materialize_grads(False)


def _restored(ctx: Any, saved: Sequence[Tensor] | None = None) -> list[list[Tensor]]:
    """The groups that :func:`_save` was given."""
    tensors = iter(ctx.saved_tensors if saved is None else saved)
    return [list(itertools.islice(tensors, size)) for size in ctx.sizes]


def _there(tensor: Tensor | None) -> list[Tensor]:
    return [] if tensor is None else [tensor]


def _only(group: Sequence[Tensor]) -> Tensor | None:
    return group[0] if group else None


def _given(gradients: Sequence[Tensor | None], like: Tensor) -> list[Tensor]:
    """Those of output, the final states and the memory; empty ones for None, which a list of tensors cannot hold."""
    return [like.new_empty(0) if gradient is None else gradient for gradient in gradients]


def _number(value: int, like: Tensor) -> Tensor:
    """A tensor of a number, which an operator can give back."""
    return torch.full((), value, dtype=torch.int64, device=like.device)


def _listing(function: Forward) -> Callable[..., list[Tensor]]:
    """The scan with the arguments and results of an operator, empty tensors in the place of None."""

    def scan(
        input: Tensor,
        state: Sequence[Tensor],
        weights: Sequence[Tensor],
        lengths: Tensor | None,
        batch_sizes: Tensor | None,
        kernel: str,
        reverse: bool,
        keep: bool,
        recompute: bool,
        collect: bool,
    ) -> list[Tensor]:
        options = Options(kernel, reverse, keep, recompute, collect)
        output, finals, memory, kept, threads = function(input, state, weights, lengths, batch_sizes, options)
        if memory is None:
            memory = input.new_empty((0,) * input.dim())
        return [output, *finals, memory, input.new_empty(0) if kept is None else kept, _number(threads, input)]

    return scan


def _listed(function: Backward) -> Callable[..., list[Tensor]]:
    """The backward with the arguments of an operator."""

    def scan_backward(
        gradients: Sequence[Tensor],
        input: Tensor,
        state: Sequence[Tensor],
        weights: Sequence[Tensor],
        lengths: Tensor | None,
        batch_sizes: Tensor | None,
        output: Tensor,
        kept: Tensor,
        threads: Tensor,
        kernel: str,
        reverse: bool,
        recompute: bool,
        input_gradient: bool,
    ) -> list[Tensor]:
        if threads.numel() != 1:
            raise RuntimeError(f"size mismatch for threads: expected (), got {tuple(threads.shape)}")
        given = [None if gradient.shape == (0,) else gradient for gradient in gradients]
        return function(
            given, input, state, weights, lengths, batch_sizes, output, kept, int(threads),
            kernel, reverse, recompute, input_gradient,
        )  # fmt: skip

    return scan_backward


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.device, tensor.shape


def _derivative(
    results: Sequence[Tensor | None], given: Sequence[Tensor | None], tensors: Sequence[Tensor], create_graph: bool
) -> list[Tensor | None]:
    """torch.autograd.grad of the results that have a gradient; None everywhere if none has."""
    pairs = [
        (result, gradient)
        for result, gradient in zip(results, given, strict=False)
        if result is not None and result.requires_grad and gradient is not None and gradient.numel()
    ]
    if not pairs:
        return [None] * len(tensors)
    return list(
        torch.autograd.grad(
            [r for r, _ in pairs], tensors, [g for _, g in pairs], create_graph=create_graph, allow_unused=True
        )
    )


def _one_by_one(operator: Callable[..., list[Tensor]]) -> Callable[..., list[Tensor]]:
    """The operator on several incoming gradients at once (is_grads_batched): torch's own rule knows no lists."""
    batched = torch._C._dispatch_key_parse("Batched")

    def rule(*arguments: Any) -> list[Tensor]:
        level = torch._C._vmapmode_increment_nesting() - 1
        torch._C._vmapmode_decrement_nesting()
        sizes: list[int] = []

        def entries(argument: Any) -> Any:
            """The argument of each of the calls, as a function of their number."""
            if isinstance(argument, (list, tuple)):
                parts = [entries(part) for part in argument]
                return lambda index: [part(index) for part in parts]
            if not isinstance(argument, Tensor) or not torch._C._dispatch_keys(argument).has(batched):
                return lambda index: argument
            whole = torch._remove_batch_dim(argument, level, 1, 0)
            sizes.append(len(whole))
            return whole.__getitem__

        taken = [entries(argument) for argument in arguments]
        results = [operator(*(part(index) for part in taken)) for index in range(sizes[0])]
        return [torch._add_batch_dim(torch.stack(parts), 0, level) for parts in zip(*results, strict=True)]

    return rule


def _on_one_device(function: Callable[..., list[Tensor]]) -> Callable[..., list[Tensor]]:
    """One tensor on another device, meta say, leads to the fake kernel; its results would pass for computed ones."""

    def checked(*arguments: Any) -> list[Tensor]:
        groups = [argument if isinstance(argument, (list, tuple)) else [argument] for argument in arguments]
        devices = dict.fromkeys(t.device for group in groups for t in group if isinstance(t, Tensor))
        if len(devices) > 1:
            raise RuntimeError(f"all tensors must be on the same device, found {' and '.join(map(str, devices))}")
        return function(*arguments)

    return checked
