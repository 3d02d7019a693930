"""Side-by-side timing against torch.nn, the Python loop and torchrecurrent. Prints no speed for a wrong result."""
