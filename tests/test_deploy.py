"""The table of docs/deploy.md: what works where, and what says that it does not."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gatedrnn
from gatedrnn.layers import LAYERS, STEPS
from tests.gates.own import Logarithm
from tests.layers.tolerances import REGROUPED, assert_close

ROOT = Path(__file__).parent.parent
I, H = 3, 4  # noqa: E741
# torch's own use of what it deprecates.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:torch.*"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = gatedrnn.LSTM(I, H, forget_gate="fast")
        self.head = nn.Linear(H, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x)[0])  # type: ignore[no-any-return]


def test_each_entry_of_the_table_is_a_test() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    rows = re.findall(r"^\| (?!what|---)(.+?) \|.*\| (.+?) \|$", page, re.MULTILINE)
    names = "\n".join(row[0] for row in rows)
    for entry in (
        "torch.compile", "torch.export", "AOTInductor", "ONNX", "torch.jit.trace", "torch.jit.script",
        "torch.fx.symbolic_trace", "quantize_dynamic", "vmap", "jvp", "DistributedDataParallel", "FSDP2", "Lightning",
    ):  # fmt: skip
        assert entry in names
    found = [place for _, tests in rows for place in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)]
    assert len(found) >= 10
    for file, test in found:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{test}"


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
def test_aot_inductor(plain: bool, tmp_path: Path) -> None:
    """The operator's form leaves batch and steps open, the plain one the steps: torch 2.13 cannot do both there."""
    model = Model().eval()
    shapes = ({0: torch.export.Dim.AUTO},) if plain else None
    program = gatedrnn.export.program(model, (torch.randn(6, 2, I),), plain=plain, dynamic_shapes=shapes)
    path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    compiled = torch._inductor.aoti_load_package(path)
    for steps, rows in ((2, 2), (90, 2 if plain else 5)):
        x = torch.randn(steps, rows, I)
        with torch.no_grad():
            assert_close(compiled(x), model(x), REGROUPED, torch.float32)


@pytest.mark.parametrize("module", [gatedrnn.LSTM(I, H), gatedrnn.GRUCell(I, H)], ids=["layer", "step"])
def test_torch_jit_is_refused(module: nn.Module) -> None:
    name, x = type(module).__name__, torch.randn(5, 2, I) if isinstance(module, gatedrnn.LSTM) else torch.randn(2, I)
    with pytest.raises(RuntimeError, match=f"{name}: torch.jit.trace would fix the number of steps; use torch.export"):
        torch.jit.trace(module, (x,))
    with pytest.raises(RuntimeError, match=f"{name}: torch.jit.script cannot compile it; use torch.export.export"):
        torch.jit.script(nn.Sequential(module))


def test_fx_sees_a_layer_as_a_leaf() -> None:
    model, x = Model(), torch.randn(5, 2, I)
    for module in (model, model.encoder, gatedrnn.GRUCell(I, H)):
        with pytest.raises(TypeError, match="symbolic_trace cannot trace it; use a Tracer whose is_leaf_module"):
            torch.fx.symbolic_trace(module)

    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return isinstance(m, gatedrnn.LSTM) or super().is_leaf_module(m, module_qualified_name)

    traced = torch.fx.GraphModule(model, Tracer().trace(model))
    assert_close(traced(x), model(x), REGROUPED, torch.float32)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_quantize_dynamic_says_what_it_leaves_alone() -> None:
    model, x = Model().eval(), torch.randn(5, 2, I)
    with pytest.warns(UserWarning, match=r"LSTM: not quantized by torch.ao.quantization; .bfloat16\(\) halves"):
        quantized = torch.ao.quantization.quantize_dynamic(model, {gatedrnn.LSTM, nn.Linear}, dtype=torch.qint8)
    assert type(quantized.head) is not nn.Linear
    assert torch.equal(quantized.encoder(x)[0], model.encoder(x)[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # its own
def test_lightning() -> None:
    lightning = pytest.importorskip("lightning", reason="a large package that nothing else here needs")

    class Lit(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch: Any, index: int) -> Tensor:
            x, y = batch
            return nn.functional.mse_loss(self.model(x.transpose(0, 1))[-1], y)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=0.05)

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(x := torch.randn(32, 7, I), x[:, :2].sum(1)[:, :2])
    module = Lit()
    before = module.training_step(data[:], 0).item()
    trainer = lightning.Trainer(
        max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=8))
    assert module.training_step(data[:], 0).item() < 0.7 * before


def test_a_whole_saved_model_is_loaded_without_trusting_it() -> None:
    """Every layer and step, with the classes of one call; a custom gate is added to them."""
    for kind in (*LAYERS.values(), *STEPS.values()):
        loaded = _loaded(module := kind(I, H), gatedrnn.safe_globals())  # type: ignore[call-arg]
        assert repr(loaded) == repr(module)
        assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), module.parameters(), strict=True))
    for init in (gatedrnn.inits.Constant(0.9), gatedrnn.inits.PowerLaw(), gatedrnn.inits.Chrono(9)):
        layer = gatedrnn.LSTM(I, H, forget_gate=gatedrnn.gates.Polynomial((0.5,)), forget_init=init)
        assert repr(_loaded(layer, gatedrnn.safe_globals())) == repr(layer)
    own = gatedrnn.LSTM(I, H, forget_gate=Logarithm())
    assert _loaded(own, [*gatedrnn.safe_globals(), Logarithm]).forget_gate == Logarithm()
    with pytest.raises(Exception, match="Unsupported global: GLOBAL tests.gates.own.Logarithm"):
        _loaded(own, gatedrnn.safe_globals())


def _loaded(module: nn.Module, classes: list[Any]) -> Any:
    stream = io.BytesIO()
    torch.save(module, stream)
    stream.seek(0)
    with torch.serialization.safe_globals(classes):
        return torch.load(stream, weights_only=True)
