"""Gate programs in the library: every instruction, whole gates, and layers with a custom gate."""

from __future__ import annotations

import ctypes
import math
import random
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor

import gatedrnn
from gatedrnn import gates
from gatedrnn.engines import ENGINES
from gatedrnn.engines.cpu import library
from gatedrnn.gates import SigmoidOf, program_of
from gatedrnn.gates.program import OPERATIONS, Program
from tests.engines.cpu.conftest import run_python
from tests.engines.cpu.loop import CUBIC
from tests.gates.own import OWN, Cubic, Scaled
from tests.gates.test_programs import WRONG, gate_of

DTYPES = {torch.float32: "float32", torch.float64: "float64"}
ULPS = 2.0
UNARY = [
    *("neg", "abs", "sign", "reciprocal", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p"),
    *("sinh", "cosh", "tanh", "asinh", "sigmoid"),
]
# Two operands: z and a function of it, or a constant.
BINARY = ["add", "sub", "mul", "div", "minimum", "maximum", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor"]
POWERS = [-7.0, -3.0, -2.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 17.0, 64.0, 100.0, 1e9, math.inf, -math.inf]  # fmt: skip


def native(program: str, z: Tensor) -> tuple[Tensor, Tensor]:
    """α and α′ as the library's interpreter gives them."""
    results = torch.full_like(z, 7.0), torch.full_like(z, 7.0)
    dtype = library.FACTS.dtypes.index(DTYPES[z.dtype])
    pointers = [t.data_ptr() for t in (z, *results)]
    status = library.load().gatedrnn_program(dtype, program.encode(), z.numel(), *pointers)
    if status:
        raise RuntimeError(library.load().gatedrnn_error().decode())
    return results


def points(dtype: torch.dtype, count: int = 6000) -> Tensor:
    """Numbers of every size, and of the sizes that matter."""
    rng = np.random.default_rng(0)
    kind, integers = (np.float32, np.uint32) if dtype == torch.float32 else (np.float64, np.uint64)
    bits = rng.integers(0, np.iinfo(integers).max, count, dtype=integers).view(kind)
    bits = bits[~np.isnan(bits)]  # among them signalling ones, which no computation gives
    near = rng.normal(size=len(bits)).astype(kind) * rng.choice([1e-4, 0.1, 1, 10, 100], len(bits)).astype(kind)
    info = np.finfo(kind)
    special = np.array([0.0, 1, 2, 0.5, 3, info.max, info.tiny, np.inf, 1 + info.eps, 1 - info.epsneg], kind)
    z = np.concatenate([bits, near, special, -special, [np.nan]]).astype(kind)
    below = np.abs(z) < info.tiny  # the kernels take what lies below the normal numbers for 0
    z[below] = np.copysign(0, z[below])
    return torch.from_numpy(z)


def assert_within_ulps(found: Tensor, wide: Tensor, ulps: float, what: str) -> None:
    """wide: the exact result, in float64 (of float32) or rounded to float64."""
    right = wide.to(found.dtype)
    tiny = torch.finfo(found.dtype).tiny
    assert torch.equal(found.isnan(), right.isnan()), what
    infinite = right.isinf() | found.isinf()
    overflow = wide.abs() > torch.finfo(found.dtype).max * (1 - 2 * torch.finfo(found.dtype).eps)
    assert torch.equal(found[infinite & ~overflow], right[infinite & ~overflow]), what
    normal = right.isfinite() & found.isfinite() & (wide.abs() >= tiny)
    unit = torch.finfo(found.dtype).eps * 2.0 ** torch.floor(torch.log2(wide[normal].abs().double()))
    error = (found[normal].double() - wide[normal].double()).abs() / unit
    assert error.numel() == 0 or error.max() <= ulps, f"{what}: {error.max()} ulp"
    low = right.isfinite() & (wide.abs() < tiny)
    assert (found[low].abs() <= tiny).all(), what
    zero = (right == 0) & (wide == 0)
    assert torch.equal(found[zero].signbit(), right[zero].signbit()), f"{what}: sign of zero"


def exact(name: str, z: Tensor, *others: Tensor) -> Tensor:
    """In float64; of float64 by mpmath, rounded once."""
    if z.dtype == torch.float32:
        return OPERATIONS[name](z.double(), *(o.double() for o in others)).double()
    return OPERATIONS[name](z, *others).double()


@pytest.mark.parametrize("name", UNARY)
def test_unary_in_float32(name: str, isa: str) -> None:
    z = points(torch.float32)
    found, _ = native(f"{name},0;=,1,1", z)
    assert_within_ulps(found, exact(name, z), ULPS, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_unary_over_all_of_float32(name: str, isa: str) -> None:
    """Every 97th of all bit patterns."""
    patterns = np.arange(0, 2**32, 97, dtype=np.uint32)
    for bits in np.array_split(patterns, 16):
        z = torch.from_numpy(bits.view(np.float32).copy())
        z = z[~z.isnan()]
        z = torch.where(z.abs() < torch.finfo(z.dtype).tiny, torch.copysign(torch.zeros(()), z), z)
        found, _ = native(f"{name},0;=,1,1", z)
        assert_within_ulps(found, exact(name, z), ULPS, name)


@pytest.mark.parametrize("name", UNARY)
def test_unary_in_float64(name: str, isa: str) -> None:
    """Against mpmath where the result is a finite number, against torch elsewhere."""
    z = points(torch.float64, 120)
    found, _ = native(f"{name},0;=,1,1", z)
    by_torch = OPERATIONS[name](z)
    functions: dict[str, Any] = {
        "neg": lambda x: -x, "abs": abs, "sign": mpmath.sign, "reciprocal": lambda x: 1 / x, "sqrt": mpmath.sqrt,
        "rsqrt": lambda x: 1 / mpmath.sqrt(x), "exp": mpmath.exp, "expm1": mpmath.expm1, "log": mpmath.log,
        "log1p": mpmath.log1p, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh, "asinh": mpmath.asinh,
        "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    }  # fmt: skip
    wide = by_torch.clone()
    with mpmath.workdps(60):
        for i, x in enumerate(z.tolist()):
            if by_torch[i].isfinite() and by_torch[i] != 0:
                wide[i] = float(functions[name](mpmath.mpf(x)))
    assert_within_ulps(found, wide, ULPS, name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: torch.dtype, isa: str) -> None:
    z = points(dtype)
    for program, other in (
        (f"neg,0;abs,1;{name},0,2;=,3,3", z.abs()),
        (f"mul,0,0;{name},0,1;=,2,2", z * z),
        (str(Program(((name, (0, 1.5)),), 1, 1)), torch.full_like(z, 1.5)),
    ):
        other = torch.where(other.abs() < torch.finfo(dtype).tiny, 0.0, other)
        expected = OPERATIONS[name](z, other).to(dtype)
        found, _ = native(program, z)
        if name in ("minimum", "maximum"):  # torch itself gives either zero
            found, expected = found + 0.0, expected + 0.0
            found, expected = (torch.where(t == 0, 0.0, t) for t in (found, expected))
        assert_within_ulps(found, expected.double(), 0.5, name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("exponent", POWERS)
def test_powers(exponent: float, dtype: torch.dtype, isa: str) -> None:
    z = points(dtype)
    names = ["pow"] + (["powi"] if exponent.is_integer() and 0 < abs(exponent) <= 64 else [])
    exponents = torch.full_like(z, exponent)
    wide = torch.pow(z.double(), exponents.double())
    for name in names:
        found, _ = native(str(Program(((name, (0, exponent)),), 1, 1)), z)
        assert_within_ulps(found, wide, ULPS, f"{name} {exponent}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_powers_of_tensors_and_of_numbers(dtype: torch.dtype, isa: str) -> None:
    z = points(dtype)
    for base in (2.0, 0.5, 1.0, 0.0, -1.0, -3.0, math.inf):
        found, _ = native(str(Program((("pow", (base, 0)),), 1, 1)), z)
        assert_within_ulps(found, torch.pow(torch.full_like(z, base).double(), z.double()), ULPS, f"{base}**z")
    found, _ = native("abs,0;pow,1,0;=,2,2", z)
    assert_within_ulps(found, torch.pow(z.abs().double(), z.double()), ULPS, "|z|**z")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where_not_copy(dtype: torch.dtype, isa: str) -> None:
    z = points(dtype)
    one = "#3ff0000000000000"
    found, other = native(f"gt,0,{one};neg,0;where,1,0,2;not,1;copy,{one};where,4,5,0;=,3,6", z)
    torch.testing.assert_close(found, torch.where(z > 1, z, -z), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(other, torch.where(z > 1, z, 1.0), rtol=0, atol=0, equal_nan=True)


def test_every_instruction_is_tested() -> None:
    tested = {*UNARY, *BINARY, "pow", "powi", "where", "not", "copy"}
    assert tested == set(OPERATIONS) == set(library.FACTS.operations)


def gate_values(gate: SigmoidOf, z: Tensor) -> tuple[Tensor, ...]:
    """value, complement and slope by the library."""
    program = program_of(gate, z.dtype)
    results = [torch.full_like(z, 7.0) for _ in range(3)]
    pointers = [t.data_ptr() for t in results]
    kind = library.FACTS.dtypes.index(DTYPES[z.dtype]), list(library.FACTS.gates).index("program")
    status = library.load().gatedrnn_gate(
        *kind, 0, None, str(program).encode(), z.numel(), z.data_ptr(), None, *pointers, None
    )
    assert status == 0, library.load().gatedrnn_error()
    return tuple(results)


@pytest.mark.parametrize("gate", OWN, ids=repr)
def test_a_whole_gate(gate: SigmoidOf, isa: str) -> None:
    """Within twice the error of the float32 reference and 4 ulp, the errors taken over some fifty neighbours."""
    z = torch.cat([torch.linspace(-12, 12, 4800), torch.logspace(-20, 4, 1000), -torch.logspace(-20, 4, 1000)])
    found = gate_values(gate, z)
    reference = gate.value(z), gate.complement(z), gate.derivative(z)
    wide = gate.value(z.double()), gate.complement(z.double()), gate.derivative(z.double())
    tiny = torch.finfo(torch.float32).tiny
    for mine, theirs, exactly in zip(found, reference, wide, strict=True):
        assert not mine.isnan().any()
        unit = torch.finfo(torch.float32).eps * exactly.abs().clamp(min=tiny)
        errors = [((t.double() - exactly).abs() / unit).view(-1, 50).amax(-1) for t in (mine, theirs)]
        assert (errors[0] <= 2 * errors[1] + 4).all(), (errors[0] - 2 * errors[1]).max()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("gate", OWN, ids=repr)
def test_the_ends_of_a_gate(gate: SigmoidOf, dtype: torch.dtype, isa: str) -> None:
    """No NaN beyond saturation, where α or α′ overflow; a NaN stays one."""
    largest = torch.finfo(dtype).max
    z = torch.tensor([torch.inf, largest, -torch.inf, -largest, torch.nan], dtype=dtype)
    for mine, expected in zip(
        gate_values(gate, z), (gate.value(z), gate.complement(z), gate.derivative(z)), strict=True
    ):
        torch.testing.assert_close(mine, expected, equal_nan=True)
        assert mine[4].isnan()


LAYERS = {
    "lstm": lambda g, **k: gatedrnn.LSTM(3, 20, forget_gate=g, **k),
    "tied": lambda g, **k: gatedrnn.LSTM(3, 20, tied=True, forget_gate=g, **k),
    "projected": lambda g, **k: gatedrnn.LSTM(3, 20, proj_size=5, forget_gate=g, recompute=True, **k),
    "gru": lambda g, **k: gatedrnn.GRU(3, 20, forget_gate=g, bidirectional=True, **k),
    "janet": lambda g, **k: gatedrnn.JANET(3, 20, forget_gate=g, recompute=True, **k),
}


def everything(layer: Any, x: Tensor, lengths: Tensor) -> list[Tensor]:
    output, state, collected = layer(x, lengths=lengths, return_states="gates")
    values = [output, *(state if isinstance(state, tuple) else [state]), *collected.values()]
    loss = sum(v.sin().sum() for v in values)
    return [*values, *torch.autograd.grad(loss, [x, *layer.parameters()])]


@pytest.mark.parametrize("gate", OWN, ids=repr)
@pytest.mark.parametrize("kind", LAYERS)
def test_layers_equal_the_reference(kind: str, gate: SigmoidOf) -> None:
    torch.manual_seed(0)
    layer: Any = LAYERS[kind](gate, dtype=torch.float64)
    x, lengths = torch.randn(20, 5, 3, dtype=torch.float64, requires_grad=True) * 2, torch.tensor([20, 3, 9, 1, 12])
    results = []
    for layer.engine in ("cpu", "reference"):
        results.append(everything(layer, x, lengths))
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-9)


def test_explain_names_the_program() -> None:
    layer, x = gatedrnn.LSTM(3, 4, forget_gate=Scaled(1.5)), torch.zeros(2, 1, 3)
    first = gatedrnn.explain(layer, x).splitlines()[0]
    assert "native lstm kernel with the gate Scaled(scale=1.5) as a native program of 4 instructions" in first
    layer = gatedrnn.LSTM(3, 4, forget_gate=gate_of(torch.erf))
    first, second, _ = gatedrnn.explain(layer, x).splitlines()
    assert first.startswith("reference: the loop over time in plain PyTorch")
    assert second == (
        "not cpu: it has no kernel for the gate Mine(): alpha uses aten.erf.default, "
        "which is not an instruction of gate programs"
    )


def test_second_derivative() -> None:
    layer: Any = gatedrnn.GRU(2, 3, forget_gate=Cubic(), dtype=torch.float64, engine="cpu")
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    names, values = zip(*layer.named_parameters(), strict=True)

    def output(x: Tensor, *weights: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x,))[0]
        return result

    assert torch.autograd.gradgradcheck(output, (x, *values))


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*", "ignore::FutureWarning:torch.*")
def test_compile_and_export() -> None:
    """The first call of a gate may be a compiled one; another gate of the same class is not mistaken for it."""
    torch.compiler.reset()
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    layer: Any = gatedrnn.LSTM(3, 4, forget_gate=Scaled(random.uniform(1, 2)), dtype=torch.float64, engine="cpu")
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        results = []
        for module in (compiled, layer):
            output = module(x)[0]
            results.append((output, *torch.autograd.grad(output.sin().sum(), list(layer.parameters()))))
        torch.testing.assert_close(results[0], results[1])
        layer.forget_gate = Scaled(random.uniform(2, 3))
    layer = gatedrnn.LSTM(3, 4, forget_gate=Scaled(random.uniform(1, 2)), dtype=torch.float64, engine="cpu")
    exported = torch.export.export(layer.requires_grad_(False), (x,)).module()
    torch.testing.assert_close(exported(x), layer(x))
    torch.compiler.reset()


@pytest.mark.parametrize("engine", ["auto", "cpu", "reference"])
@pytest.mark.parametrize("what", WRONG)
def test_wrong_gates_are_the_same_error_on_every_engine(what: str, engine: str) -> None:
    function, message = WRONG[what]
    layer: Any = gatedrnn.GRU(3, 4, forget_gate=gate_of(function), engine=engine)
    with pytest.raises(RuntimeError, match=r"^Mine\(\): " + message):
        layer(torch.zeros(2, 1, 3))
    if engine == "reference":  # as an object too
        layer.engine = ENGINES[engine]
        with pytest.raises(RuntimeError, match=r"^Mine\(\): " + message):
            layer(torch.zeros(2, 1, 3))
    step: Any = gatedrnn.GRUCell(3, 4, forget_gate=gate_of(lambda z: z, function))
    with pytest.raises(RuntimeError, match=r"^Mine\(\): " + message.replace("alpha", "alpha_derivative")):
        step(torch.zeros(1, 3))


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_captured_tensor_runs_on_the_reference_engine(engine: str) -> None:
    """Also one that fits the hidden units only."""
    scale = torch.linspace(0.5, 2, 4)
    layer: Any = gatedrnn.GRU(
        3, 4, forget_gate=gate_of(lambda z: z * scale, lambda z: scale.expand_as(z)), engine=engine
    )
    if engine == "reference":
        assert layer(torch.randn(5, 2, 3))[0].isfinite().all()
        return
    with pytest.raises(RuntimeError, match="alpha uses a tensor that it did not compute from z"):
        layer(torch.randn(5, 2, 3))


ONE = torch.tensor(1.0)
WRONG_AND_CAPTURING: dict[str, tuple[tuple[Any, ...], str]] = {
    "shape": ((lambda z: (z * ONE)[..., :1],), r"alpha must keep the shape of z, \(2, 4\), got \(2, 1\)"),
    "dtype": ((lambda z: (z * ONE).double(),), "alpha must keep the dtype of z"),
    "random": ((lambda z: z * ONE + torch.rand_like(z),), "alpha gives different results for the same input"),
    "slope": ((lambda z: z * ONE, lambda z: 1 / 0), "alpha_derivative raised ZeroDivisionError"),
}


@pytest.mark.parametrize("engine", ["auto", "cpu", "reference"])
@pytest.mark.parametrize("what", WRONG_AND_CAPTURING)
def test_a_captured_tensor_hides_no_error(what: str, engine: str) -> None:
    functions, message = WRONG_AND_CAPTURING[what]
    layer: Any = gatedrnn.GRU(3, 4, forget_gate=gate_of(*functions), engine=engine)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"^Mine\(\): " + message):
            layer(torch.zeros(5, 2, 3))


def many_registers(z: Tensor) -> Tensor:
    total, parts = z, [z * (0.001 * k) for k in range(1, 70)]
    for part in reversed(parts):
        total = total + part
    return total


@pytest.mark.parametrize(
    ("alpha", "reason"),
    [
        (many_registers, "the gate program needs more than 64 registers"),
        (lambda z: z * z.abs() / (z.abs() + 1e-40), "its native program does not reproduce alpha"),
    ],
    ids=["registers", "a number below the normal ones"],
)
def test_what_the_library_does_not_compute_is_refused(alpha: Any, reason: str) -> None:
    layer: Any = gatedrnn.GRU(2, 3, forget_gate=gate_of(alpha))
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    x = torch.zeros(2, 1, 2)
    assert reason in gatedrnn.explain(layer, x)
    assert layer(x)[0].isfinite().all()
    layer.engine = "cpu"
    with pytest.raises(RuntimeError, match=reason):
        layer(x)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_nan_of_alpha_stays_in_its_row(engine: str) -> None:
    gate = gate_of(lambda z: torch.log1p(z), lambda z: 1 / (1 + z))  # NaN for z < −1
    layer: Any = gatedrnn.JANET(1, 40, forget_gate=gate, engine=engine)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.zero_()
            if name.startswith("weight_ih"):
                parameter.fill_(1.0)
    x = torch.zeros(3, 9, 1)
    x[1, 4] = -2.0
    x.requires_grad_()
    output = layer(x)[0]
    others = [row for row in range(9) if row != 4]
    assert output[1:, 4].isnan().all() and output[0].isfinite().all() and output[:, others].isfinite().all()
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert gradient[:, others].isfinite().all() and gradient[1, 4].isnan().all()


def test_damaged_programs_are_refused() -> None:
    """Whatever the text is, an answer or an error, and no address outside of the registers."""
    z = torch.linspace(-1, 1, 33)
    for text, message in (
        ("", "no results"), ("=", "no results"), ("exp,0", "unknown operation|no results"), ("boo,0;=,1,1", "unknown operation boo"),
        ("exp,1;=,1,1", "operand 1 before it is computed"), ("exp,0,0;=,1,1", "wrong number of operands"),
        ("exp,0;=,2,1", "operand 2 before"), ("exp,0;=,1,#3ff0000000000000", "a result is a constant"), ("exp,#12;=,1,1", "operand #12"),
        ("exp,-1;=,1,1", "operand -1"), ("exp,99999999999999999999;=,1,1", "operand 9"), ("powi,0,0;=,1,1", "powi needs a whole constant"),
        ("powi,0,#3fe0000000000000;=,1,1", "powi needs a whole constant"), ("powi,0,#4070000000000000;=,1,1", "powi needs"),
        ("powi,0,#7ff8000000000000;=,1,1", "powi needs"), (";".join(["exp,0"] * 257) + ";=,1,1", "more than 256 instructions"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            native(text, z)
    many = [f"add,0,#{i:016x}" for i in range(1, 80)]
    chain = ";".join([*many, "add,1,2", *(f"add,{i},{77 + i}" for i in range(3, 80))])
    with pytest.raises(RuntimeError, match="more than 64 registers"):
        native(chain + ";=,157,157", z)
    r = random.Random(0)
    good, said = 0, set()
    for _ in range(3000):
        text = list(CUBIC)
        for _ in range(r.randint(1, 3)):
            text[r.randrange(len(text))] = r.choice("0123456789abcdef,;#=-x")
        try:
            native("".join(text), z)
            good += 1
        except RuntimeError as error:
            said.add(str(error).split(":")[0])
    assert said == {"the gate program is damaged"}
    assert good > 50


def test_every_length_is_written_and_no_more(isa: str) -> None:
    for n in range(70):
        z = torch.linspace(-1, 1, n + 1)[:n].clone()
        room = torch.full((2, n + 20), 7.0)
        pointers = z.data_ptr(), room[0].data_ptr(), room[1].data_ptr()
        assert library.load().gatedrnn_program(0, CUBIC.encode(), n, *pointers) == 0
        torch.testing.assert_close(room[0, :n], z + z**3 / 3)
        assert (room[:, n:] == 7).all()


def test_the_c_interface() -> None:
    lib = library.load()
    z = (ctypes.c_double * 4)()
    pointer = ctypes.addressof(z)
    assert lib.gatedrnn_program(1, CUBIC.encode(), 4, pointer, pointer, pointer) == 0
    assert lib.gatedrnn_program(7, CUBIC.encode(), 4, pointer, pointer, pointer) == 1
    assert lib.gatedrnn_program(1, None, 4, pointer, pointer, pointer) == 1
    assert lib.gatedrnn_program(1, CUBIC.encode(), 4, None, pointer, pointer) == 1
    assert lib.gatedrnn_program(1, CUBIC.encode(), -4, pointer, pointer, pointer) == 1


def test_a_program_that_another_locale_reads_the_same() -> None:
    code = """
import locale, torch, gatedrnn
for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
    try:
        locale.setlocale(locale.LC_ALL, name)
        break
    except locale.Error:
        pass
from tests.gates.own import Scaled
layer, x = gatedrnn.GRU(3, 4, forget_gate=Scaled(1.25), engine="cpu"), torch.ones(2, 1, 3)
found = layer(x)[0]
layer.engine = "reference"
print(torch.allclose(found, layer(x)[0]))
"""
    done = run_python(code)
    assert done.stdout == "True\n", done.stderr


def test_built_in_gates_stay_what_they_are() -> None:
    for name, kind in gates.GATES.items():
        layer: Any = gatedrnn.LSTM(2, 3, forget_gate=kind())
        assert f"with the {name} gate" in gatedrnn.explain(layer, torch.zeros(2, 1, 2))
