"""The paper's smaller claims: in its text, and in none of its tables and figures."""

from __future__ import annotations

from gatedrnn.lab.experiments.base import TextClaim

NRU_COPY, ITERATED_TIME, UNIFORM = "text:nru_copy", "text:iterated_time", "text:uniform_time_scales"

CLAIMS = (
    TextClaim(
        NRU_COPY, "NRU diverges on copy, also with the clipping threshold divided by ten", shown_by="own:nru_copy"
    ),
    TextClaim(
        ITERATED_TIME,
        "iterated_fast takes 1.07 times as long as fast (15.8/14.7 minutes per epoch)",
        shown_by="tab:sMNIST_results_GRU",
    ),
    TextClaim(
        UNIFORM,
        "uniform initialisation gives the refine gate skewed time scales, unlike P(D = x) ∝ 1/x² of other gates",
        shown_by="tab:gates_comparison",
    ),
)
