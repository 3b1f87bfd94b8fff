package audit

import "time"

// RetryOwedAfter shortens the time after which entries that are owed are tried again.
func RetryOwedAfter(d time.Duration) { owedInterval = d }
