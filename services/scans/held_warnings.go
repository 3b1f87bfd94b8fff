package scans

import (
	"fmt"

	"github.com/palisade/palisade/services/scans/ingest"
)

// heldStats is the key of the number of held closes in scans.stats.
const heldStats = "held_closes"

// heldWarnings says for people what was held, why, and what to do.
func heldWarnings(list []ingest.Held) map[ingest.Analysis]string {
	warnings := make(map[ingest.Analysis]string, len(list))
	for _, held := range list {
		part := fmt.Sprintf("%d of the %d open findings (%d %%)", held.Closes, held.Open, held.Closes*100/max(held.Open, 1))
		if held.Closes == held.Open {
			part = fmt.Sprintf("all %d open findings", held.Open)
		}
		next := "the next report that misses them too closes them"
		if held.Rejected {
			next = "closes of some of them were rejected before, so only a person can close them, or a report of another version of the tool"
		}
		warnings[held.Analysis] = fmt.Sprintf(
			"this report has no result for %s of its tool and category; they stay open for now, because so many closes at once are often a broken scan "+
				"(held closes %d): %s; to close them now: palisade closes confirm %d; to keep them open: palisade closes reject %d",
			part, held.ID, next, held.ID, held.ID)
	}
	return warnings
}
