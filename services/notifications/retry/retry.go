// Package retry says when a delivery that failed is tried again.
package retry

import (
	"math"
	"time"
)

const (
	// First bounds the first delay.
	First = 5 * time.Second
	// Longest bounds every delay.
	Longest = time.Hour
	// Patience is how long a delivery is tried at all.
	Patience = 24 * time.Hour
)

// Delay is the time until the next attempt after a number of failed ones: with full jitter, anything up to a bound that
// doubles with every third failure. Doubling with each would let a receiver that fails half of the time, at random,
// keep the unluckiest of 10,000 messages waiting for hours: one of them fails 14 times. random is in [0, 1).
func Delay(failures int32, random float64) time.Duration {
	bound := float64(First) * math.Pow(2, float64(max(failures, 1)-1)/3)
	return time.Duration(random * min(bound, float64(Longest)))
}
