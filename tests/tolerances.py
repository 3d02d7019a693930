"""Every tolerance of the numerical tests, each with its reason. Errors are measured in units of these bounds."""

from __future__ import annotations

#: value, complement, derivative against mpmath: error ≤ ULPS ulp of the result plus
#: |∂/∂z| · Z_ULPS ulp of z. The rounding of s = α(z) inside the same dtype is of the second size.
ULPS = 4.0
Z_ULPS = 0.5

#: Logarithms and time scales: a logarithm and a division come on top of the gate's own error.
LOG_ULPS = 6.0

#: Second derivative (autograd through `derivative`), relative to the size of the terms it is a sum of, because the
#: sum passes through 0: eps · (SECOND_EPS + |z|·α′). Two products and one sum more than the first derivative make
#: twice its 4 ulp; |z|·α′ is again the rounding of s.
SECOND_EPS = 8.0

#: 16-bit results come from float32 and are rounded once: half an ulp of the 16-bit result, and what the bound above
#: leaves of float32 error, which is below this fraction of a 16-bit ulp for every gate.
ROUNDED_ONCE = 0.5 + 0.02

#: Inverse functions: error in ulp of z. logit, asinh and one division each add an ulp or two.
INVERSE_ULPS = 6.0

#: Values of initialisers in float64 against closed forms: a few roundings of numbers of order 1 to 10.
INIT_RELATIVE = 1e-14

#: Quantiles of the inverse gamma law against scipy: both solve gammainc numerically, whose own error is about 1e-13
#: relative and is divided by the slope of the quantile function.
QUANTILE_RELATIVE = 1e-11

#: The flat part that `flush` leaves just below the smallest normal number.
FLUSH_MARGIN = 2.0**-10

#: Kolmogorov–Smirnov: the p-value of a fixed seed has to exceed this. A wrong law of 20,000 draws is below 1e-50.
KS_P_VALUE = 0.01
