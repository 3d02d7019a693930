"""How parameters start: counts, torch's draws first, the forget initialiser's contract, every layer and direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

import gatedrnn
from gatedrnn.gates import GATES, resolve
from gatedrnn.inits import INITS, Chrono, Constant, ForgetInit, PowerLaw, Uniform
from gatedrnn.layers import LAYERS
from tests.cells.equations import PHI
from tests.conformance.cases import ALL_CASES, CELL_CASES, GATED_CASES, Case, by_layer
from tests.layers.tolerances import BIAS, SIGMAS, assert_close

I, H = 3, 6  # noqa: E741
ROWS = {("lstm", False): "ifgo", ("lstm", True): "fgo", ("gru", False): "rfn"}
ROWS |= {(name, False): "fg" for name in ("janet", "ugrnn", "mgu")}
INITIALISERS = [Constant(0.9), Chrono(t_max=100.0), Uniform(), PowerLaw()]


def fused_rows(case: Case) -> str | None:
    """The order of the row blocks, from the contract; None for cells that name their weights after their papers."""
    return ROWS.get((case.cell, ("tied", True) in case.options))


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_every_initialiser_is_here() -> None:
    assert {type(init) for init in INITIALISERS} == set(INITS.values())


@pytest.mark.parametrize("case", [c for c in ALL_CASES if fused_rows(c)], ids=str)
def test_counts_of_the_fused_cells(case: Case) -> None:
    """k(H(I+H)+2H), one k more for an auxiliary gate."""
    k = len(fused_rows(case) or "") + case.aux
    assert count(case.layer(5, 7)) == k * (7 * (5 + 7) + 2 * 7)
    assert count(case.step(5, 7)) == k * (7 * (5 + 7) + 2 * 7)
    assert count(case.layer(5, 7, bias=False)) == k * 7 * (5 + 7)
    deep = case.layer(5, 7, num_layers=2, bidirectional=True)
    assert count(deep) == 2 * k * (7 * (5 + 7) + 2 * 7) + 2 * k * (7 * (14 + 7) + 2 * 7)


def test_counts_the_paper_speaks_of() -> None:
    n = H * (I + H) + 2 * H
    assert count(gatedrnn.LSTM(I, H)) == 4 * n
    assert count(gatedrnn.LSTM(I, H, tied=True)) == 3 * n
    assert count(gatedrnn.LSTM(I, H, tied=True, forget_gate="refine")) == 4 * n
    assert count(gatedrnn.JANET(I, H)) == 2 * n
    assert count(gatedrnn.JANET(I, H, forget_gate="refine")) == 3 * n


@pytest.mark.parametrize("aux", [False, True])
def test_names_of_the_other_cells(aux: bool) -> None:
    gate = "refine" if aux else "fast"
    minimal = gatedrnn.MinimalRNN(I, H, forget_gate=gate)
    names = ["W_l0", "U_l0", "V_l0", "b_z_l0", "b_u_l0"] + ["U_aux_l0", "V_aux_l0", "b_u_aux_l0"] * aux
    assert [name for name, _ in minimal.named_parameters()] == names
    fastgrnn = gatedrnn.FastGRNN(I, H, forget_gate=gate)
    names = ["W_l0", "U_l0", "b_z_l0", "b_h_l0", "zeta_l0", "nu_l0"] + ["W_aux_l0", "U_aux_l0", "b_z_aux_l0"] * aux
    assert [name for name, _ in fastgrnn.named_parameters()] == names
    lstm = gatedrnn.LSTM(I, H, bidirectional=True, forget_gate=gate)
    assert ("bias_hh_aux_l0_reverse" in lstm.state_dict()) == aux
    assert ("weight_ih_aux" in gatedrnn.LSTMCell(I, H, forget_gate=gate).state_dict()) == aux


@pytest.mark.parametrize("case", [c for c in ALL_CASES if c.aux], ids=str)
def test_the_auxiliary_draws_come_after_all_others(case: Case) -> None:
    made = []
    for gate in (case.gate, "sigmoid"):
        torch.manual_seed(0)
        made.append(Case(case.cell, gate, case.options).layer(I, H, num_layers=2, bidirectional=True))
    own = dict(made[1].named_parameters())
    for name, parameter in made[0].named_parameters():
        if name in own and not name.startswith("b_z"):  # FastGRNN's b_z is φ⁻¹, not a draw
            assert torch.equal(parameter, own[name])
        elif "aux" in name and not name.startswith("b_z"):
            assert parameter.unique().numel() > 1


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_default_law(case: Case) -> None:
    """U(±1/√H): its bound, mean and variance. FastGRNN and NRU start as their authors'; see tests/cells."""
    if case.cell in ("fastgrnn", "nru"):
        pytest.skip("as its authors")
    torch.manual_seed(0)
    layer = case.layer(64, 64)
    bound = 1 / 8
    for name, p in layer.named_parameters():
        assert p.abs().max() <= bound
        assert p.abs().max() > 0.9 * bound
        sigma = bound / 3**0.5
        assert abs(p.mean().item()) <= SIGMAS * sigma / p.numel() ** 0.5, name
        # The variance of U² is 4/45 of bound⁴.
        spread = abs(p.square().mean().item() - sigma**2)
        assert spread <= SIGMAS * bound**2 * (4 / 45 / p.numel()) ** 0.5, name


def forget_slices(case: Case, weights: dict[str, Tensor]) -> list[list[Tensor]]:
    """Our own reading of the contract: the biases of the forget gate, and of its auxiliary."""
    rows = fused_rows(case)
    if rows:
        part = slice(rows.index("f") * H, (rows.index("f") + 1) * H)
        found = [[weights["bias_ih"][part], weights["bias_hh"][part]]]
        return found + ([[weights["bias_ih_aux"], weights["bias_hh_aux"]]] if case.aux else [])
    name = {"minimal_rnn": "b_u", "fastgrnn": "b_z"}[case.cell]
    return [[weights[name]]] + ([[weights[f"{name}_aux"]]] if case.aux else [])


@pytest.mark.parametrize("init", INITIALISERS, ids=str)
@pytest.mark.parametrize("case", GATED_CASES, ids=str)
def test_forget_init_touches_only_its_slices(case: Case, init: ForgetInit) -> None:
    """The draw goes into the first bias, the second becomes zero, all other numbers are those without initialiser,
    and the draws come after all others, in the order of layers and directions."""
    torch.manual_seed(0)
    plain = case.layer(I, H, bidirectional=True)
    gate = resolve(case.gate or "")
    drawn = [init(gate, H) for _ in range(2)]
    torch.manual_seed(0)
    layer = case.layer(I, H, bidirectional=True, forget_init=init)

    expected = {key: {name: p.detach().clone() for name, p in w.items()} for key, w in by_layer(plain).items()}
    for biases, weights in zip(drawn, expected.values(), strict=True):
        for (first, *others), value in zip(forget_slices(case, weights), biases, strict=True):
            first.copy_(value)
            for other in others:
                other.zero_()
        if isinstance(init, Chrono | PowerLaw) and fused_rows(case) == "ifgo":
            f = PHI[case.gate or ""](*biases)
            weights["bias_ih"][:H] = torch.log1p(-f) - torch.log(f)
            weights["bias_hh"][:H] = 0
    for key, weights in by_layer(layer).items():
        for name, parameter in weights.items():
            torch.testing.assert_close(parameter.detach(), expected[key][name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", GATED_CASES, ids=str)
def test_forget_init_of_the_single_steps(case: Case) -> None:
    init = Chrono(t_max=100.0)
    torch.manual_seed(0)
    step = case.step(I, H, forget_init=init)
    torch.manual_seed(0)
    layer = case.layer(I, H, forget_init=init)
    for name, parameter in by_layer(layer)["l0"].items():
        assert torch.equal(parameter, step.get_parameter(name))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("gate", GATES)
def test_forget_init_is_cast_last(gate: str, dtype: torch.dtype) -> None:
    layer: Any = gatedrnn.LSTM(I, H, forget_gate=gate, tied=True, forget_init=Chrono(50.0), dtype=dtype)
    bias = layer.bias_ih_l0[:H].detach()
    assert bias.dtype == dtype
    torch.manual_seed(0)
    layer.reset_parameters()
    torch.manual_seed(0)
    gatedrnn.LSTM(I, H, forget_gate=gate, tied=True, dtype=dtype)
    (exact, *_) = Chrono(50.0)(resolve(gate), H)
    assert torch.equal(layer.bias_ih_l0[:H], exact.to(dtype))


@pytest.mark.parametrize("case", GATED_CASES, ids=str)
def test_chrono_time_scales_lie_within_t_max(case: Case) -> None:
    """All layers and directions. 1/(1−f) is in (2, t_max); −1/log f lies half a step below."""
    t_max = 200.0
    torch.manual_seed(0)
    layer = case.layer(I, 64, num_layers=2, bidirectional=True, forget_init=Chrono(t_max))
    scales = gatedrnn.time_scales(layer)
    assert list(scales) == ["l0", "l0_reverse", "l1", "l1_reverse"]
    for scale in scales.values():
        assert scale.shape == (64,)
        assert scale.min() >= 1 / torch.log(torch.tensor(2.0))
        assert scale.max() <= t_max
        assert scale.max() > t_max / 2  # the longest of 64
        assert abs(scale.mean().item() - t_max / 2) < SIGMAS * t_max / 12**0.5 / 8
    flat = torch.stack(list(scales.values()))
    assert flat.unique().numel() == flat.numel()  # every layer and direction has draws of its own


@pytest.mark.parametrize("gate", GATES)
def test_uniform_gives_uniform_gate_values(gate: str) -> None:
    """UR and UF: the gate's own value is uniform in (1/H, 1−1/H), for refine also the refined one."""
    size = 1000
    torch.manual_seed(0)
    layer: Any = gatedrnn.LSTM(
        1, size, tied=True, forget_gate=gate, forget_init="uniform", dtype=torch.float64, device="cpu"
    )
    biases = [layer.bias_ih_l0[:size]]
    if gate == "refine":
        biases.append(layer.bias_ih_aux_l0)
        assert torch.equal(biases[1], -biases[0])
        biases = [biases[0], torch.zeros_like(biases[0])]  # the gate f itself, before it is refined
    f = PHI[gate](*biases).detach().sort().values
    assert f[0] > 1 / size
    assert f[-1] < 1 - 1 / size
    # Kolmogorov's distance of a uniform sample exceeds 2/√n with probability 7e-4.
    level = (torch.arange(size, dtype=torch.float64) + 0.5) / size
    assert (f - level).abs().max() < 2 / size**0.5


def test_refine_without_uniform_starts_at_one_and_zero() -> None:
    layer: Any = gatedrnn.LSTM(I, H, tied=True, forget_gate="refine", forget_init="constant", dtype=torch.float64)
    assert_close(layer.bias_ih_l0[:H], torch.ones(H, dtype=torch.float64), BIAS, torch.float64)
    for bias in (layer.bias_hh_l0[:H], layer.bias_ih_aux_l0, layer.bias_hh_aux_l0):
        assert (bias == 0).all()


@pytest.mark.parametrize("name", [name for name in LAYERS if LAYERS[name] is not gatedrnn.NRU])
def test_bad_initialisers(name: str) -> None:
    kind: Any = LAYERS[name]
    with pytest.raises(ValueError, match="bias=False"):
        kind(I, H, bias=False, forget_init="constant")
    with pytest.raises(ValueError, match=r"Chrono\(t_max=…\)"):
        kind(I, H, forget_init="chrono")
    with pytest.raises(ValueError, match=r"'chronos'.*constant, chrono, uniform, power_law"):
        kind(I, H, forget_init="chronos")
    with pytest.raises(ValueError, match="hidden_size ≥ 2, got 1"):
        kind(I, 1, forget_init="uniform")
    with pytest.raises(TypeError, match=r"3\.0"):
        kind(I, H, forget_init=3.0)
    with pytest.raises(ValueError, match=r"'fat'.*sigmoid, softsign, fast"):
        kind(I, H, forget_gate="fat")
    with pytest.raises(TypeError, match="None"):
        kind(I, H, forget_gate=None)


def test_no_values_on_the_meta_device() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    layer: Any = gatedrnn.LSTM(I, H, device="meta", forget_gate="refine", forget_init=Chrono(50.0))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(p.is_meta for p in layer.parameters())


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_reset_with_a_parametrisation_without_inverse(case: Case) -> None:
    """What it is applied to is drawn, as by torch.nn's layers."""

    class Lower(nn.Module):
        def forward(self, weight: Tensor) -> Tensor:
            return weight.tril()

    for module in (case.layer(3, 4), case.step(3, 4)):
        name = next(name for name, weight in module.named_parameters() if weight.dim() == 2)
        torch.manual_seed(5)
        module.reset_parameters()
        expected = getattr(module, name).detach().clone()
        nn.utils.parametrize.register_parametrization(module, name, Lower())
        torch.manual_seed(5)
        module.reset_parameters()
        original = module.parametrizations[name].original
        torch.testing.assert_close(original, expected, rtol=0, atol=0)


def test_an_initialiser_may_be_assigned_by_name() -> None:
    for module in (gatedrnn.LSTM(3, 4), gatedrnn.LSTMCell(3, 4)):
        module.forget_init = "constant"  # type: ignore[assignment]
        module.reset_parameters()
        scales = gatedrnn.time_scales(module)["l0"]
        torch.testing.assert_close(scales, torch.full((4,), -1 / math.log(1 / (1 + math.exp(-1)))))
        module.forget_init = "chrono"  # type: ignore[assignment]
        with pytest.raises(ValueError, match="t_max"):
            module.reset_parameters()


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_reset_reaches_parametrised_weights(case: Case) -> None:
    """reset_parameters may not leave a parametrised weight as it was."""
    layer = case.layer(I, H)
    name = next(name for name, p in layer.named_parameters() if p.dim() > 1)
    nn.utils.parametrizations.weight_norm(layer, name)
    before = getattr(layer, name).detach().clone()
    torch.manual_seed(5)
    layer.reset_parameters()
    torch.manual_seed(5)
    fresh = case.layer(I, H)
    assert not torch.equal(before, getattr(layer, name))
    for key in by_layer(fresh)["l0"]:
        torch.testing.assert_close(getattr(layer, f"{key}_l0"), getattr(fresh, f"{key}_l0"))


@pytest.mark.parametrize("kind", [gatedrnn.LSTM, gatedrnn.GRUCell])
def test_one_parameter_for_both_biases_counts_twice(kind: type[Any]) -> None:
    layer = kind(2, 3, forget_init=Constant(0.99))
    suffix = "_l0" if kind is gatedrnn.LSTM else ""
    setattr(layer, f"bias_hh{suffix}", getattr(layer, f"bias_ih{suffix}"))
    layer.reset_parameters()
    expected = torch.full((3,), -1 / torch.log(torch.tensor(0.99)).item())
    torch.testing.assert_close(gatedrnn.time_scales(layer)["l0"], expected, rtol=1e-4, atol=0)


def _pruned(layer: nn.Module, name: str) -> None:
    prune.custom_from_mask(layer, name, torch.arange(getattr(layer, name).numel()).view_as(getattr(layer, name)) % 2)


COMPUTED: dict[str, Callable[[nn.Module, str], Any]] = {
    "pruned": _pruned,
    "spectral norm": nn.utils.spectral_norm,
    "weight norm": nn.utils.weight_norm,
    "weight norm of the whole": lambda layer, name: nn.utils.weight_norm(layer, name, dim=None),
    "weight norm of columns": lambda layer, name: nn.utils.weight_norm(layer, name, dim=1),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("how", COMPUTED)
def test_weights_that_are_computed_from_others_are_drawn_again(how: str) -> None:
    """As a layer without them, for the same seed, up to what is computed."""
    plain, layer = gatedrnn.GRU(2, 3), gatedrnn.GRU(2, 3)
    COMPUTED[how](layer, "weight_hh_l0")
    for module in (plain, layer):
        torch.manual_seed(7)
        module.reset_parameters()
    drawn = plain.weight_hh_l0.detach()
    if how == "pruned":
        assert torch.equal(layer.get_parameter("weight_hh_l0_orig"), drawn)
        expected = drawn * layer.get_buffer("weight_hh_l0_mask")
        assert torch.equal(layer.weight_hh_l0, expected)
    elif how == "spectral norm":
        assert torch.equal(layer.get_parameter("weight_hh_l0_orig"), drawn)
        return
    else:
        expected = drawn
    layer(torch.zeros(1, 1, 2))  # computes the weight anew
    torch.testing.assert_close(layer.weight_hh_l0.detach(), expected)


@pytest.mark.parametrize("name", ["LSTM", "FastGRNN", "NRU"])
@pytest.mark.parametrize("init", [None, "constant", "power_law", gatedrnn.inits.Chrono(50.0)])
def test_layers_of_fake_tensors(name: str, init: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    options = {} if name == "NRU" else {"forget_init": init}
    with FakeTensorMode():
        layer = getattr(gatedrnn, name)(2, 3, **options)
    assert {type(p).__name__ for p in layer.parameters()} <= {"FakeTensor", "Parameter"}


def test_an_initial_bias_beyond_its_dtype_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="forget biases beyond the range of their dtype"):
        layer = gatedrnn.LSTM(2, 8, dtype=torch.float16, forget_gate="softsign", forget_init=gatedrnn.inits.Chrono(1e6))
    assert layer.bias_ih_l0.isfinite().all()
