"""Questions counted by Spark. Without PySpark, importing this package raises an error that says what to install."""

from dpselect._messages import install_command
from dpselect.errors import MissingExtra

try:
    import pyarrow  # noqa: F401 - whether it can be imported is the question
    import pyspark.sql  # noqa: F401 - as above
except ImportError:
    remedy = install_command("pandas", "pyarrow", "pyspark")
    raise MissingExtra(f"engine 'spark' needs PySpark 4, pandas and PyArrow: {remedy}") from None
