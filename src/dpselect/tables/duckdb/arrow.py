"""PyArrow is an extra: whether it is there, and the error if a source needs it."""

from dpselect.errors import MissingExtra


def has_arrow() -> bool:
    """Whether PyArrow can be imported."""
    try:
        import pyarrow.dataset  # noqa: PLC0415 - an extra
        import pyarrow.parquet  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


def check_arrow(what: str, remedy: str) -> None:
    """Raise an error if PyArrow is missing: what needs it, and the command that installs what is needed."""
    if not has_arrow():
        raise MissingExtra(f"{what}: {remedy}")
