"""The paper and the studies: what is built with the library, and is not needed to use it."""
