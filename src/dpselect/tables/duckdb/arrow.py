"""PyArrow is an extra. This says whether it is there, and how to install it where a source needs it."""

from dpselect._install import install_command
from dpselect.errors import MissingExtra


def has_arrow() -> bool:
    """Whether PyArrow can be imported."""
    try:
        import pyarrow.dataset  # noqa: PLC0415 - an extra
        import pyarrow.parquet  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


def check_arrow(what: str) -> None:
    """Raise an error if PyArrow is missing. `what` needs it, in the plural."""
    if not has_arrow():
        raise MissingExtra(f"{what} need PyArrow: {install_command('pyarrow')}")
