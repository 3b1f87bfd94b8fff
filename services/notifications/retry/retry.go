// Package retry computes when a failed delivery is retried.
package retry

import (
	"math"
	"time"
)

const (
	// InitialDelay is the upper bound of the first delay.
	InitialDelay = 5 * time.Second
	// MaxDelay is the upper bound of all delays.
	MaxDelay = time.Hour
	// GiveUpAfter is the age at which a delivery is abandoned.
	GiveUpAfter = 24 * time.Hour
)

// Delay is the backoff after a number of failed attempts, with full jitter. The upper bound doubles after every third
// failure. Doubling after each failure would delay messages to a receiver that fails half of the time at random: among
// 10,000 messages, one fails 14 times and would wait for hours. random is in [0, 1).
func Delay(failures int32, random float64) time.Duration {
	bound := float64(InitialDelay) * math.Pow(2, float64(max(failures, 1)-1)/3)
	return time.Duration(random * min(bound, float64(MaxDelay)))
}
