package list

import (
	"strconv"
	"strings"
	"sync"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
)

// PostgreSQL keeps the rows of a transaction that is not committed in the indexes like all others, and the findings
// of an import are the newest: a list would begin with looking at each of them, only to learn that it may not be
// seen. Large imports therefore announce the time that their findings will have (see ent.PendingImport), and a list
// is read around it.

// pendingQuery reads the times of a deployment's large imports that are not committed, the latest first.
const pendingQuery = "SELECT string_agg(relevant_since::text, ' ' ORDER BY relevant_since DESC) FROM pending_imports " +
	"WHERE deployment_id = ?"

// mostParts is around how many imports a page is read: the latest ones, which are before all others in the list.
const mostParts = 8

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

// pendingImports remembers what the latest page of each deployment learned. It may be outdated: that is seen with the
// page.
type pendingImports struct{ byDeployment sync.Map }

func (p *pendingImports) of(deploymentID int64) []int64 {
	pending, _ := p.byDeployment.Load(deploymentID)
	list, _ := pending.([]int64)
	return list
}

func (p *pendingImports) learn(deploymentID int64, pending []int64) {
	if len(pending) > 0 {
		p.byDeployment.Store(deploymentID, pending[:min(len(pending), mostParts)])
	} else if _, known := p.byDeployment.Load(deploymentID); known {
		p.byDeployment.Delete(deploymentID)
	}
}

// around parts the list behind start at the times of pending imports, the latest first: what has such a time is left
// out. Another change of the same microsecond waits with it for the end of the import.
func around(pending []int64, start boundary) (parts [][]predicate.Finding) {
	var begin []predicate.Finding
	if start != (boundary{}) {
		begin = append(begin, Behind(start.relevantSince, start.id))
	}
	for _, since := range pending {
		if start == (boundary{}) || since < start.relevantSince {
			parts = append(parts, append(begin, finding.RelevantSinceGT(since)))
			begin = []predicate.Finding{finding.RelevantSinceLT(since)}
		}
	}
	return append(parts, begin)
}
