// Package scanstats reads the stored statistics of scans.
package scanstats

import "maps"

// Scanner is the key of what the scanner itself reported.
const Scanner = "scanner"

// Older is the key of the newer scan that was stored before.
const Older = "older_than_scan"

// totalTime is the key of the duration in seconds, as scanners report it.
const totalTime = "total_time"

// MaxSeconds is the longest duration of a scan that is believed. Scanners with a wrong clock tell others.
const MaxSeconds = 30 * 24 * 60 * 60

// flat are the numbers of the scanner that clients look for beside the counts of the server.
var flat = []string{"findings", totalTime}

// Shown returns the statistics as clients read them: findings and total_time of the scanner nested and flat. A
// total_time that cannot be true is left out.
func Shown(stats map[string]any) map[string]any {
	told, _ := stats[Scanner].(map[string]any)
	shown := maps.Clone(stats)
	if _, ok := Seconds(stats); !ok && told[totalTime] != nil {
		told = maps.Clone(told)
		delete(told, totalTime)
		shown[Scanner] = told
	}
	for _, name := range flat {
		if value, ok := told[name]; ok {
			shown[name] = value
		}
	}
	return shown
}

// Seconds returns the duration that the scanner reported; ok is false if it reported none that can be true.
func Seconds(stats map[string]any) (seconds float64, ok bool) {
	told, _ := stats[Scanner].(map[string]any)
	seconds, ok = told[totalTime].(float64)
	return seconds, ok && seconds >= 0 && seconds <= MaxSeconds
}
