"""Puts a kernel from elsewhere in the place of dpselect's own: import this first, or give it to pytest with `-p`.

The environment names the module, `DPSELECT_SANITIZED`: `fuzz.sanitize` sets it for the processes that it starts.
"""

import importlib.util
import os
import sys

_NAME = "dpselect.selection._kernel"

_spec = importlib.util.spec_from_file_location(_NAME, os.environ["DPSELECT_SANITIZED"])
assert _spec is not None
assert _spec.loader is not None
sys.modules[_NAME] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[_NAME])
