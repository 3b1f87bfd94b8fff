package list

import (
	"strconv"
	"strings"
	"sync"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
)

// PostgreSQL indexes the rows of uncommitted transactions too. The findings of a running import are the newest, so a
// list would first visit each of them and find it invisible. Large imports therefore publish the time that their
// findings will have (see ent.PendingImport), and lists skip that time.

// pendingQuery reads the times of the deployment's uncommitted large imports, the latest first.
const pendingQuery = "SELECT string_agg(relevant_since::text, ' ' ORDER BY relevant_since DESC) FROM pending_imports " +
	"WHERE deployment_id = ?"

// maxPending is the largest number of imports that a page skips. The latest imports come first in the list.
const maxPending = 8

func parsePending(list string) (pending []int64, err error) {
	for word := range strings.FieldsSeq(list) {
		since, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, err
		}
		pending = append(pending, since)
	}
	return pending, nil
}

// pendingImports caches the pending imports of each deployment, as the latest page has read them. Each page reads them
// again, so readPage detects an outdated entry.
type pendingImports struct{ byDeployment sync.Map }

func (p *pendingImports) of(deploymentID int64) []int64 {
	pending, _ := p.byDeployment.Load(deploymentID)
	list, _ := pending.([]int64)
	return list
}

func (p *pendingImports) update(deploymentID int64, pending []int64) {
	if len(pending) > 0 {
		p.byDeployment.Store(deploymentID, pending[:min(len(pending), maxPending)])
	} else if _, known := p.byDeployment.Load(deploymentID); known {
		p.byDeployment.Delete(deploymentID)
	}
}

// splitAround returns the conditions for the parts of the list after start, between the times of pending imports.
// Findings with such a time are left out until the import is committed, also findings of other imports.
func splitAround(pending []int64, start boundary) (parts [][]predicate.Finding) {
	var begin []predicate.Finding
	if start != (boundary{}) {
		begin = append(begin, After(start.relevantSince, start.id))
	}
	for _, since := range pending {
		if start == (boundary{}) || since < start.relevantSince {
			parts = append(parts, append(begin, finding.RelevantSinceGT(since)))
			begin = []predicate.Finding{finding.RelevantSinceLT(since)}
		}
	}
	return append(parts, begin)
}
