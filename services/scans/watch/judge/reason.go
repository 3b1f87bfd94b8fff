package judge

import (
	"fmt"
	"strings"
	"time"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Reason says what is wrong with an analysis and what to do; empty when its state is fine.
func Reason(h *storev1.Freshness, state State, now time.Time) string {
	switch state {
	case Shrunk:
		return shrunk(h)
	case Failing:
		return failed(h) + " Look at the log of the CI job, and run \"palisade doctor --ci\" in it."
	case Late:
		return gone(h, now) + " Look whether the CI job still runs."
	case Silent:
		return gone(h, now) + " Scanning is off: look whether the CI job still exists and its token is valid. If nobody needs the scans, archive the project."
	}
	return ""
}

func gone(h *storev1.Freshness, now time.Time) string {
	days := int(now.Sub(timeOf(reference(h))) / day)
	text := fmt.Sprintf("No successful scan for %s", count(days, "day"))
	if usual := UsualOf(h).Days; usual > 0 {
		text += "; usually there is one every " + strings.TrimPrefix(count(usual, "day"), "1 ")
	}
	if text += "."; h.GetFailures() > 0 {
		text += " " + failed(h)
	}
	return text
}

func failed(h *storev1.Freshness) string {
	text := fmt.Sprintf("The last %d scans failed since %s", h.GetFailures(), timeOf(h.GetFailingSince()).Format(time.DateOnly))
	if h.GetFailures() == 1 {
		text = "The last scan failed"
	}
	if h.GetFailure() != "" {
		text += ": " + h.GetFailure()
	}
	return text + "."
}

func shrunk(h *storev1.Freshness) string {
	var parts []string
	for _, d := range Drops(h) {
		parts = append(parts, fmt.Sprintf("%s from %d to %d", d.What, d.Before, d.Now))
	}
	return "Dropped: " + strings.Join(parts, ", ") + ". Look whether the scan still covers the whole repository: its paths, ignored files and rules. " +
		"If the change is meant, do nothing: it becomes usual after some days with scans."
}

// count writes a number with its unit: "1 day", "2 days".
func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
