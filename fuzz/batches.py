"""Many inputs for one question: DuckDB needs as long for one line as for a thousand."""

from collections.abc import Callable

from fuzz.targets import table_lines, table_rows


class Batched:
    """Keeps inputs, and tries them together when there are enough: each line of a table stands for itself."""

    def __init__(self, size: int, target: Callable[[bytes], None] = table_lines) -> None:
        self._size, self._target = size, target
        self._kept: list[bytes] = []

    def __call__(self, data: bytes) -> None:
        """Keep an input. What the reader of single lines does with it tells the fuzzer whether it is a new one."""
        table_rows(data)
        self._kept.append(data)
        if len(self._kept) == self._size:
            kept, self._kept = self._kept, []
            self._try(kept)

    def _try(self, kept: list[bytes]) -> None:
        try:
            self._target(b"\n".join(kept))
        except Exception as error:
            for data in kept:  # the fuzzer shows the last input only
                try:
                    self._target(data)
                except Exception as single:
                    raise AssertionError(f"wrong for {data!r}") from single
            raise AssertionError(f"wrong for all of these together: {kept!r}") from error
