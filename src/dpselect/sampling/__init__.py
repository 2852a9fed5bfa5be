"""Exact random draws. Each function is named by what it draws and takes its source of bits as an argument."""
