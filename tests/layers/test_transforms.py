"""torch.compile, torch.export, vmap, forward mode: the reference engine is plain PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, stack_module_state, vmap

import gatedrnn
from tests.conformance.cases import AUX_CASES, CELL_CASES, Case, as_argument, as_tuple, random_state, spread
from tests.layers.tolerances import REGROUPED, assert_close

I, H, T, B = 3, 4, 3, 2  # noqa: E741
DOUBLE = torch.float64
# torch's own use of what it deprecates: jvp rules are TorchScript, export and Inductor read old attributes.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.*` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*"),
    pytest.mark.filterwarnings("ignore::FutureWarning:torch.*"),
]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def made(case: Case, **keywords: Any) -> tuple[Any, Tensor]:
    layer = case.layer(I, H, **keywords)
    spread(layer)
    torch.manual_seed(0)
    return layer, torch.randn(T, B, I, dtype=DOUBLE)


def same_when_compiled(layer: Any, x: Tensor, backend: str, **keywords: Any) -> None:
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    results = []
    for module in (layer, compiled):
        leaf = x.clone().requires_grad_()
        result = module(leaf, **keywords)
        loss = result[0].pow(2).sum() + sum(s.sum() for s in as_tuple(result[1]))
        results.append((*result, torch.autograd.grad(loss, [leaf, *layer.parameters()])))
    assert_close(results[1], results[0], REGROUPED, DOUBLE)


@pytest.mark.parametrize("case", [*CELL_CASES, Case("lstm", "fast"), Case("gru", "refine")], ids=str)
def test_compile(case: Case) -> None:
    layer, x = made(case)
    same_when_compiled(layer, x, "aot_eager")


def test_compile_with_everything() -> None:
    layer, x = made(Case("lstm", "refine"), proj_size=2)
    state = tuple(random_state(layer, B))
    same_when_compiled(layer, x, "aot_eager", hx=state, lengths=torch.tensor([2, 3]), return_states="gates")


@pytest.mark.slow
@pytest.mark.parametrize("case", [Case("lstm", "fast"), Case("gru", "sigmoid")], ids=str)
def test_compile_by_inductor(case: Case) -> None:
    layer, x = made(case)
    same_when_compiled(layer, x, "inductor")


@pytest.mark.parametrize("case", [*CELL_CASES, Case("lstm", "fast"), Case("gru", "refine")], ids=str)
def test_export(case: Case) -> None:
    layer, x = made(case)
    program = torch.export.export(layer, (x,)).module()
    other = torch.randn_like(x)
    assert_close(program(other), layer(other), REGROUPED, DOUBLE)


def test_export_with_state_and_lengths() -> None:
    layer, x = made(Case("lstm", "fast"), bidirectional=True)
    arguments = (x, random_state(layer, B), torch.tensor([2, 3]))
    program = torch.export.export(layer, arguments).module()
    other = (torch.randn_like(x), random_state(layer, B, seed=8), torch.tensor([3, 1]))
    assert_close(program(*other), layer(*other), REGROUPED, DOUBLE)


@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_vmap_over_an_ensemble(case: Case) -> None:
    """Outputs and, by grad under vmap, gradients of five layers at once."""
    members = [case.layer(I, H) for _ in range(5)]
    for seed, member in enumerate(members):
        spread(member, seed=seed)
    torch.manual_seed(0)
    x = torch.randn(T, B, I, dtype=DOUBLE)
    parameters, buffers = stack_module_state(members)
    skeleton = copy.deepcopy(members[0]).to("meta")

    def output(p: Any, b: Any) -> Any:
        return functional_call(skeleton, (p, b), (x,))[0]

    def loss(p: Any, b: Any) -> Any:
        return output(p, b).pow(2).sum()

    assert_close(vmap(output)(parameters, buffers), torch.stack([m(x)[0] for m in members]), REGROUPED, DOUBLE)
    slopes = vmap(grad(loss))(parameters, buffers)
    for k, member in enumerate(members):
        expected = torch.autograd.grad(member(x)[0].pow(2).sum(), list(member.parameters()))
        assert_close([s[k] for s in slopes.values()], list(expected), REGROUPED, DOUBLE)


@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_vmap_over_inputs(case: Case) -> None:
    layer, _ = made(case, bidirectional=True)
    x = torch.randn(3, T, B, I, dtype=DOUBLE)
    assert_close(vmap(lambda s: layer(s)[0])(x), torch.stack([layer(s)[0] for s in x]), REGROUPED, DOUBLE)


@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_forward_mode_agrees_with_reverse_mode(case: Case) -> None:
    layer, x = made(case)
    state = random_state(layer, B)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def function(x: Tensor, parameters: dict[str, Tensor], *state: Tensor) -> Tensor:
        return functional_call(layer, parameters, (x, as_argument(state)))[0]  # type: ignore[no-any-return]

    torch.manual_seed(1)
    primals = (x, parameters, *state)
    tangents = torch.utils._pytree.tree_map(torch.randn_like, primals)
    value, change, *_ = jvp(function, primals, tangents)
    assert_close(value, layer(x, as_argument(state))[0], REGROUPED, DOUBLE)
    weight = torch.randn_like(value)
    slopes = grad(lambda *p: (function(*p) * weight).sum(), argnums=tuple(range(len(primals))))(*primals)
    flat = zip(*(torch.utils._pytree.tree_leaves(tree) for tree in (slopes, tangents)), strict=True)
    assert_close((change * weight).sum(), sum((s * t).sum() for s, t in flat), REGROUPED, DOUBLE)


def test_compiled_model_around_a_converted_layer() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(I, H, dtype=DOUBLE)
            self.head = nn.Linear(H, 1, dtype=DOUBLE)

        def forward(self, x: Tensor) -> Any:
            return self.head(self.rnn(x)[0])

    model = gatedrnn.convert(Model(), "fast")
    x = torch.randn(T, B, I, dtype=DOUBLE)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert_close(compiled(x), model(x), REGROUPED, DOUBLE)


def test_recompute_is_refused_where_torch_cannot_do_it() -> None:
    layer, x = gatedrnn.LSTM(I, H, recompute=True), torch.randn(T, B, I)

    def loss(parameters: dict[str, Tensor]) -> Tensor:
        return functional_call(layer, parameters, (x,))[0].sum()

    parameters = dict(layer.named_parameters())
    with pytest.raises(RuntimeError, match=r"recompute=True does not work inside torch\.func's grad"):
        grad(loss)(parameters)
    for requires_grad in (False, True):  # backward would compute again outside vmap
        batch = torch.randn(2, T, B, I, requires_grad=requires_grad)
        with pytest.raises(RuntimeError, match="or inside vmap with gradients; use recompute=False there"):
            vmap(lambda given: layer(given)[0])(batch)
        with torch.no_grad():
            assert_close(vmap(lambda given: layer(given)[0])(batch)[1], layer(batch[1])[0], REGROUPED, torch.float32)
    layer.recompute = False
    found = grad(loss)(parameters)
    loss(parameters).backward()
    for name, parameter in parameters.items():
        torch.testing.assert_close(found[name], parameter.grad)
