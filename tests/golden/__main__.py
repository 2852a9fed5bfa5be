"""Write the golden files again: `python -m tests.golden`. A change of one belongs in a commit that says why."""

from tests.golden.files import GOLDEN, text_of

if __name__ == "__main__":
    for path, lines in GOLDEN.items():
        path.write_text(text_of(lines), encoding="utf-8")
