"""Exact random draws. Each function is named after what it draws, and takes its source of bits as an argument."""
