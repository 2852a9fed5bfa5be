"""The probabilities of each mechanism in float64, with a derived error bound. No answer is ever drawn from them."""
