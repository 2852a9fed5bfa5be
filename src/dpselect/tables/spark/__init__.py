"""Questions counted by Spark."""
