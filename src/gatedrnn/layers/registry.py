"""All layers and single steps, and the classes that a saved one is made of."""

from __future__ import annotations

from gatedrnn.cells import CELLS
from gatedrnn.gates import GATES
from gatedrnn.inits import INITS
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.fastgrnn import FastGRNN, FastGRNNCell
from gatedrnn.layers.gru import GRU, GRUCell
from gatedrnn.layers.janet import JANET, JANETCell
from gatedrnn.layers.lstm import LSTM, LSTMCell
from gatedrnn.layers.mgu import MGU, MGUCell
from gatedrnn.layers.minimal_rnn import MinimalRNN, MinimalRNNCell
from gatedrnn.layers.nru import NRU, NRUCell
from gatedrnn.layers.step import RecurrentStep
from gatedrnn.layers.ugrnn import UGRNN, UGRNNCell

#: The layers by the name of their cell.
LAYERS: dict[str, type[RecurrentLayer]] = {
    "lstm": LSTM,
    "gru": GRU,
    "janet": JANET,
    "nru": NRU,
    "ugrnn": UGRNN,
    "minimal_rnn": MinimalRNN,
    "fastgrnn": FastGRNN,
    "mgu": MGU,
}

#: The single-step modules by the name of their cell.
STEPS: dict[str, type[RecurrentStep]] = {
    "lstm": LSTMCell,
    "gru": GRUCell,
    "janet": JANETCell,
    "nru": NRUCell,
    "ugrnn": UGRNNCell,
    "minimal_rnn": MinimalRNNCell,
    "fastgrnn": FastGRNNCell,
    "mgu": MGUCell,
}


def safe_globals() -> list[type]:
    """The classes of this library in a whole saved layer, for torch.load with ``weights_only=True``.

    Add your own classes, such as a custom gate, and those of torch.nn.

    >>> layer = gatedrnn.LSTM(2, 3, forget_gate="fast")
    >>> import io
    >>> stream = io.BytesIO()
    >>> torch.save(layer, stream)
    >>> with torch.serialization.safe_globals(gatedrnn.safe_globals()):
    ...     torch.load(io.BytesIO(stream.getvalue()), weights_only=True)
    LSTM(2, 3, forget_gate=Fast())
    """
    return [*LAYERS.values(), *STEPS.values(), *CELLS.values(), *GATES.values(), *INITS.values()]
