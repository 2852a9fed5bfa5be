"""Questions counted by DuckDB."""
