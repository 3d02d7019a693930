"""The letters that stand for sizes in shapes, comments and docstrings.

=====  ====================================================================
T      time steps
B      batch
I      input size, features of one step
H      hidden size, units of a layer
P      proj_size, the size of h in a projected LSTM (otherwise H)
L      layers
D      directions: 2 if bidirectional, else 1
M      memory size of the NRU
K      heads of the NRU
=====  ====================================================================

Time comes first: an input is (T, B, I), a sequence of states (T, B, H). ``batch_first`` exchanges T and B.
"""
