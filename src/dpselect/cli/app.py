"""Placeholder replaced below."""


def main() -> None:
    """Run."""
