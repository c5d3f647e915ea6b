"""Move one outcome and leave the others alone, measuring one outcome at a time.

The names of the front door are listed in __init__.pyi, and loaded on first use, so `import sidestep`
costs nothing.
"""

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
