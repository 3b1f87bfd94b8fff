package llm

import "math"

// Money rounds a sum of costs, in US dollars or credits, to nine digits: sums of floats end in noise, as
// 1.7999999999999998. The price of a token has fewer digits.
func Money(sum float64) float64 {
	const digits = 1e9
	return math.Round(sum*digits) / digits
}
