"""Whether there is a compiled kernel to test."""

import pytest

from dpselect.selection import kernel

WITHOUT = "needs the compiled kernel: install the clone where a C compiler is, and do not set DPSELECT_KERNEL=no"
needs_kernel = pytest.mark.skipif(kernel.compiled is None, reason=WITHOUT)
