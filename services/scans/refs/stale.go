package refs

import (
	"fmt"
	"strings"
	"time"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/ingest"
)

// actorJob is the actor of finding events for which no scan, person or host is responsible.
const actorJob = "job"

// stale reports whether nothing scanned a ref for so long that its findings leave the lists.
func (t *Tidier) stale(r openRef) (ingest.Removal, bool) {
	age, what := t.ages.Stale, "nothing scanned its ref"
	if strings.HasPrefix(r.ref, gitref.DetachedPrefix) {
		age, what = t.ages.Detached, "nothing scanned its commit without a branch"
	}
	if age == 0 || time.Since(store.Time(r.scannedAt)) < age {
		return ingest.Removal{}, false
	}
	return ingest.Removal{ActorKind: actorJob, Reason: fmt.Sprintf("%s since %s", what, store.Time(r.scannedAt).UTC().Format(time.DateOnly))}, true
}
