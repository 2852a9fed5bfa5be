"""The probability mass function of each mechanism in float64, with its error bound. Never used to release an answer."""
