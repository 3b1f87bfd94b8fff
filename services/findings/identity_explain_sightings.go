package findings

import (
	"context"
	"fmt"
	"slices"
	"sync"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/findingmatch"
	"github.com/palisade/palisade/ent/scancoverage"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// The outcomes of a scan for a finding.
const (
	outcomeSeen       = "seen"
	outcomeJoined     = "joined"
	outcomeNew        = "new"
	outcomeNotCovered = "not_looked_at"
)

// addSightings adds how the latest scan and earlier scans matched the finding.
func (e *explanation) addSightings(ctx context.Context, db *ent.Client) error {
	matches, err := db.FindingMatch.Query().Where(findingmatch.FindingID(e.row.ID)).Order(ent.Desc(findingmatch.FieldID)).Limit(e.limit + 1).All(ctx)
	if err != nil {
		return err
	}
	latest, err := e.latest(ctx, db, matches)
	if err != nil {
		return err
	}
	ids := []int64{}
	for _, match := range matches {
		ids = append(ids, match.ScanID)
	}
	if latest != nil {
		ids = append(ids, latest.GetScanId())
	}
	if len(ids) > 0 {
		if err := e.readScans(ctx, db, ids...); err != nil {
			return err
		}
	}
	for _, match := range matches {
		sighting, err := e.convertMatch(match)
		if err != nil {
			return err
		}
		switch {
		case e.out.Latest == nil && latest.GetScanId() == match.ScanID && lifecycle.Seen(e.row.State): // the stored match has more details
			e.out.Latest = sighting
		case len(e.out.Earlier) < e.limit:
			e.out.Earlier = append(e.out.Earlier, sighting)
		}
	}
	if e.out.Latest == nil && latest != nil {
		e.setScan(latest, latest.GetScanId(), 0)
		e.out.Latest = latest
	}
	return nil
}

// latest returns the sighting of the latest scan that covers the finding. The scan may be the scan of a stored match,
// which has more details. It returns nil if people closed the finding.
func (e *explanation) latest(ctx context.Context, db *ent.Client, matches []*ent.FindingMatch) (*findingsv1.IdentitySight, error) {
	if !lifecycle.Seen(e.row.State) {
		return e.closing(ctx, db)
	}
	known := e.row.FirstSeenScanID
	if len(matches) > 0 {
		known = max(known, matches[0].ScanID)
	}
	sighting := &findingsv1.IdentitySight{ScanId: known, Outcome: outcomeSeen}
	covered, err := db.ScanCoverage.Query().Where(scancoverage.ProjectID(e.row.ProjectID), scancoverage.Ref(e.row.Ref), scancoverage.Tool(e.row.Tool),
		scancoverage.AnalysisCategory(e.row.AnalysisCategory), scancoverage.ScanIDGT(known), scancoverage.IsFullScan(true)).
		Order(ent.Desc(scancoverage.FieldScanID)).First(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, err
	}
	if covered != nil {
		about, err := decodeCoverage(covered.Content)
		if err != nil {
			return nil, fmt.Errorf("coverage of scan %d: %w", covered.ScanID, err)
		}
		sighting.ScanId = covered.ScanID
		if why := notCovered(about, e.rule, e.content.GetLocation().GetFilePath()); why != "" {
			sighting.Outcome = outcomeNotCovered
			sighting.Text = "The scan did not cover it: " + why + ". Its state is unchanged."
			return sighting, nil
		}
	}
	sighting.After = placeOf(e.content)
	if sighting.GetScanId() == e.row.FirstSeenScanID {
		sighting.Outcome, sighting.Text = outcomeNew, "The scan saw it first."
		if first := e.out.GetIdentity().GetFirstScanId(); first != 0 && first != e.row.FirstSeenScanID {
			sighting.Text = "The scan saw it first on this ref, and matched it to another ref by the same evidence."
		}
		return sighting, nil
	}
	if len(e.out.GetEvidence()) > 0 {
		sighting.Rung = e.out.GetEvidence()[0].GetRung()
	}
	sighting.Text = "The scan saw it by the same evidence."
	if sighting.GetRung() != "" {
		sighting.Text = fmt.Sprintf("The scan saw it by the same evidence: %s.", describeRung(sighting.GetRung()))
	}
	return sighting, nil
}

// closing returns the sighting of the scan that closed the finding.
func (e *explanation) closing(ctx context.Context, db *ent.Client) (*findingsv1.IdentitySight, error) {
	last, err := db.FindingEvent.Query().Where(findingevent.FindingID(e.row.ID), findingevent.ToStatusIn(lifecycle.Fixed, lifecycle.Removed),
		func(s *entsql.Selector) {
			s.Where(entsql.ColumnsNEQ(s.C(findingevent.FieldFromStatus), s.C(findingevent.FieldToStatus)))
		}).Order(ent.Desc(findingevent.FieldID)).First(ctx)
	if ent.IsNotFound(err) || err == nil && last.ScanID == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("The scan covered it and did not report it: it is %s.", last.ToStatus)
	if last.Reason != "" {
		text = fmt.Sprintf("The scan did not report it, so it is %s: %s.", last.ToStatus, last.Reason)
	}
	return &findingsv1.IdentitySight{
		ScanId: *last.ScanID, At: timestamppb.New(store.Time(last.At)), Ref: e.row.Ref, Outcome: last.ToStatus, Text: text,
		Before: placeOf(e.content),
	}, nil
}

// coverageDecoder decompresses coverages. The coverage of a large repository has a few megabytes.
var coverageDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
})

func decodeCoverage(stored []byte) (*storev1.ScanCoverage, error) {
	decoder, err := coverageDecoder()
	if err != nil {
		return nil, err
	}
	raw, err := decoder.DecodeAll(stored, nil)
	if err != nil {
		return nil, err
	}
	about := &storev1.ScanCoverage{}
	return about, proto.Unmarshal(raw, about)
}

// notCovered returns the reason why a scan did not cover a finding, or "".
func notCovered(about *storev1.ScanCoverage, rule, path string) string {
	contains := func(list []string, word string) bool { return slices.Contains(list, word) }
	switch {
	case about.GetFailure() != "":
		return about.GetFailure()
	case about.GetRulesKnown() && !contains(about.GetRules(), rule):
		return "it did not run the rule"
	case contains(about.GetSkipped(), path):
		return "it could not examine the file"
	case about.GetFilesKnown() && path != "" && !contains(about.GetFiles(), path):
		return "it did not examine the file"
	}
	return ""
}

// convertMatch returns a stored match as a sighting.
func (e *explanation) convertMatch(match *ent.FindingMatch) (*findingsv1.IdentitySight, error) {
	content := &storev1.FindingMatch{}
	if err := proto.Unmarshal(match.Content, content); err != nil {
		return nil, fmt.Errorf("match %d: %w", match.ID, err)
	}
	sighting := &findingsv1.IdentitySight{
		ScanId: match.ScanID, Outcome: outcomeJoined, Rung: match.Rung, Before: convertPlace(content.GetBefore()), After: convertPlace(content.GetAfter()),
		FromRef: content.GetFromRef(),
	}
	for _, candidate := range content.GetConsidered() {
		sighting.Considered = append(sighting.Considered, &findingsv1.IdentityCandidate{
			FindingId: candidate.GetFindingId(), Rung: candidate.GetRung(), Refused: candidate.GetRefused(),
		})
	}
	switch {
	case match.Rung == "":
		sighting.Outcome = outcomeNew
		sighting.Text = fmt.Sprintf("The scan saw it first. No similar finding was a certain match (%d considered).", len(sighting.GetConsidered()))
	case match.ScanID == e.row.FirstSeenScanID:
		sighting.Text = fmt.Sprintf("The scan saw it first on this ref, and matched it to %s by %s.", sighting.GetFromRef(), describeRung(match.Rung))
	default:
		sighting.Text = fmt.Sprintf("The scan joined its result to this finding by %s: no stronger evidence was the same.", describeRung(match.Rung))
	}
	e.setScan(sighting, match.ScanID, match.At)
	return sighting, nil
}

// setScan sets the ref and the time of a sighting from its scan, or else the time at. The time of the scan is more
// exact.
func (e *explanation) setScan(sighting *findingsv1.IdentitySight, id, at int64) {
	if sighting.GetRef() == "" {
		sighting.Ref = e.row.Ref
	}
	if known := e.scans[id]; known != nil {
		sighting.Ref, at = known.Ref, known.StartedAt
	}
	if at != 0 {
		sighting.At = timestamppb.New(store.Time(at))
	}
}
