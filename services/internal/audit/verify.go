package audit

import (
	"bytes"
	"context"
	"crypto/hmac"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
)

// verifyPage is the number of entries per query.
const verifyPage = 500

// Report is the result of Verify for one deployment.
type Report struct {
	// Entries is the number of unchanged entries, up to the first broken one.
	Entries int64
	// Unchained is the number of entries from before the chain.
	Unchained int64
	// First and Last are the times of the first and last valid entry, in microseconds since 1970; 0 without entries.
	First, Last int64
	// Sequence and Hash identify the last valid entry. Stored elsewhere, they prove later that no entry up to here was
	// removed (see Anchor).
	Sequence int64
	Hash     []byte
	// Origin records since when there is a chain; nil if unknown.
	Origin *Origin
	// Anchors is the number of known entries that were found.
	Anchors int
	// UnsealedIDs is the number of entries at the end whose ids are not sealed yet, because a server of the previous
	// version has written them. The next entry of this version seals them.
	UnsealedIDs int64
	// Broken lists what is wrong; empty for an intact trail. For the chain itself it has only the first problem.
	Broken []Broken
}

// Broken is a problem of a trail.
type Broken struct {
	// Sequence is the entry with the problem; 0 if it concerns no single entry.
	Sequence int64
	// Reason describes the problem for people.
	Reason string
}

// Verify checks the chain of a deployment from its beginning, and compares it with entries that are known from
// elsewhere. Entries that are appended during the check may or may not be part of the report. progress is called with
// the number of entries so far; it may be nil.
func (t *Trail) Verify(ctx context.Context, deploymentID int64, known []Anchor, progress func(entries int64)) (Report, error) {
	v := &verification{trail: t, known: map[int64][]Anchor{}, progress: progress, ids: idCheck{trail: t}}
	for _, a := range known {
		if a.Sequence > 0 {
			v.known[a.Sequence] = append(v.known[a.Sequence], a)
			v.newest = max(v.newest, a.Sequence)
		}
	}
	if err := v.run(tenant.NewContext(ctx, deploymentID)); err != nil {
		return Report{}, fmt.Errorf("verify the audit trail: %w", err)
	}
	return v.report, nil
}

type verification struct {
	trail    *Trail
	known    map[int64][]Anchor // by sequence
	newest   int64              // highest sequence in known
	progress func(int64)
	ids      idCheck
	// until is the number of the first entry with a value of a type that no server stores; nil if there is none.
	until *string
	// headEdited: the head has such a value, and is not read.
	headEdited bool
	report     Report
}

func (v *verification) broken(sequence int64, format string, args ...any) {
	v.report.Broken = append(v.report.Broken, Broken{Sequence: sequence, Reason: fmt.Sprintf(format, args...)})
}

func (v *verification) intact() bool { return len(v.report.Broken) == 0 }

// run checks the chain and then everything outside it, because tampering with one can hide in the other.
func (v *verification) run(ctx context.Context) (err error) {
	if v.until, err = v.trail.firstMisstored(ctx); err != nil {
		return err
	}
	if v.headEdited, err = v.trail.headMisstored(ctx); err != nil {
		return err
	}
	head, err := v.chain(ctx)
	if err != nil {
		return err
	}
	switch {
	case v.headEdited:
		v.broken(0, "the head of the trail was edited: it has a value that no server stores")
	case v.intact():
		v.checkHead(head)
	case head == nil:
		v.broken(0, "the head of the trail was removed")
	case !v.trail.sealed(head):
		v.broken(0, "the head of the trail was forged")
	}
	if !v.headEdited {
		v.checkIDs()
		v.checkOrigin(head)
	}
	v.checkAnchors()
	return v.checkUnchained(ctx)
}

// chain checks entries up to the head. It repeats while the chain grows: a head that is read after the last entry
// must not be older than that entry.
func (v *verification) chain(ctx context.Context) (*ent.AuditHead, error) {
	for {
		head, err := v.head(ctx)
		if err != nil {
			return nil, err
		}
		before := v.report.Sequence
		v.ids.of(head)
		if err := v.walk(ctx); err != nil || !v.intact() {
			return head, err
		}
		if v.report.Sequence > before && (head == nil || head.Sequence < v.report.Sequence) {
			continue // entries were appended during the check, and so was their head
		}
		return head, nil
	}
}

// head reads the head; nil if there is none, or none that can be read.
func (v *verification) head(ctx context.Context) (*ent.AuditHead, error) {
	if v.headEdited {
		return nil, nil
	}
	head, err := v.trail.store.Reader.AuditHead.Query().Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return head, err
}

// walk checks the entries after the last valid one.
func (v *verification) walk(ctx context.Context) error {
	for {
		query := v.trail.store.Reader.AuditEntry.Query().Where(chained, auditentry.SequenceGT(v.report.Sequence))
		if v.until != nil {
			query.Where(sequenceBelow(*v.until))
		}
		rows, err := storedEntries(ctx, query.Order(ent.Asc(auditentry.FieldSequence)).Limit(verifyPage))
		if err != nil {
			return err
		}
		for i := range rows {
			if v.entry(&rows[i]); !v.intact() {
				break
			}
		}
		if v.progress != nil {
			v.progress(v.report.Entries)
		}
		if v.intact() && len(rows) < verifyPage && v.until != nil {
			v.broken(v.report.Sequence+1, "entry #%s was edited: it has a value of a type that no server stores", *v.until)
		}
		if !v.intact() || len(rows) < verifyPage {
			return nil
		}
	}
}

// entry checks an entry's hash, and its link to the previous entry.
func (v *verification) entry(row *storedEntry) {
	r, e := &v.report, row.entry()
	switch {
	case e.Sequence == r.Sequence+2:
		v.broken(e.Sequence, "entry #%d was removed", r.Sequence+1)
	case e.Sequence != r.Sequence+1:
		v.broken(e.Sequence, "entries #%d to #%d were removed", r.Sequence+1, e.Sequence-1)
	case !hmac.Equal(v.trail.hashStored(e, row.Changes), e.Hash), row.Changes != nil && len(row.Changes) == 0, e.PreviousHash != nil && len(e.PreviousHash) == 0:
		v.broken(e.Sequence, "entry #%d was edited, moved here or added", e.Sequence)
	case !bytes.Equal(e.PreviousHash, r.Hash):
		v.broken(e.Sequence, "entry #%d does not follow entry #%d: one of them was replaced", e.Sequence, r.Sequence)
	case !v.matchesAnchors(e):
		v.broken(e.Sequence, "entry #%d differs from the anchor: the trail was replaced by another", e.Sequence)
	default:
		if r.Entries == 0 {
			r.First = e.At
		}
		r.Entries, r.Sequence, r.Last, r.Hash = r.Entries+1, e.Sequence, e.At, e.Hash
		v.ids.add(e)
	}
}

// checkHead compares the last entry with the head.
func (v *verification) checkHead(head *ent.AuditHead) {
	r := &v.report
	switch {
	case head == nil && r.Sequence == 0 && !v.trail.marked: // nothing was written yet
	case head == nil:
		v.broken(r.Sequence, "the head of the trail was removed; entries behind #%d may be missing", r.Sequence)
	case !v.trail.sealed(head):
		v.broken(r.Sequence, "the head of the trail was forged; entries behind #%d may be missing", r.Sequence)
	case head.Sequence > r.Sequence:
		v.broken(r.Sequence+1, "the end was cut off: %s missing", span(r.Sequence+1, head.Sequence))
	case head.Sequence < r.Sequence:
		v.broken(head.Sequence+1, "the head of the trail is an older one, of entry #%d: it was put back", head.Sequence)
	case !bytes.Equal(head.Hash, r.Hash):
		v.broken(r.Sequence, "the head of the trail does not match entry #%d: it was put back from another copy", r.Sequence)
	}
}

// checkIDs compares the ids with their seal. In a broken chain they cannot match.
func (v *verification) checkIDs() {
	if !v.intact() {
		return
	}
	problem, unsealed := v.ids.problem(v.report.Sequence)
	if problem != "" {
		v.broken(0, "%s", problem)
	}
	v.report.UnsealedIDs = unsealed
}

// matchesAnchors compares an entry with the known anchors.
func (v *verification) matchesAnchors(e *ent.AuditEntry) bool {
	for _, a := range v.known[e.Sequence] {
		if !hmac.Equal(a.Hash, e.Hash) {
			return false
		}
		v.report.Anchors++
	}
	return true
}

func (v *verification) checkAnchors() {
	if v.newest > v.report.Sequence && v.intact() {
		v.broken(v.report.Sequence+1, "%s missing although #%d is known: the trail was cut off, or put back from an older copy",
			span(v.report.Sequence+1, v.newest), v.newest)
	}
}

// checkOrigin checks the proof that the deployment has a chain. Without it an emptied trail would look like a new
// one.
func (v *verification) checkOrigin(head *ent.AuditHead) {
	origin, err := v.trail.originOf(head)
	switch {
	case err != nil:
		v.broken(0, "the origin of the trail was edited, or copied from another deployment")
	case origin == nil && v.trail.marked:
		v.broken(0, "the origin of the trail, which is created with the deployment, was removed: the whole trail, or a part of it, may be missing")
	case origin != nil && !v.trail.marked:
		v.broken(0, "the key of the trail was restored from an older copy, from before the origin was created")
	}
	v.report.Origin = origin
}

func span(from, to int64) string {
	if from == to {
		return fmt.Sprintf("entry #%d is", from)
	}
	return fmt.Sprintf("entries #%d to #%d are", from, to)
}

// checkUnchained compares the entries outside the chain with the state when the chain began.
func (v *verification) checkUnchained(ctx context.Context) error {
	edited, err := v.trail.misstoredUnchained(ctx)
	if err != nil {
		return err
	}
	if edited > 0 {
		v.broken(0, "%d entries from before the trail were edited: they have values of types that no server stores", edited)
		return nil
	}
	from := v.trail.store.Reader.AuditEntry
	taken, err := from.Query().Where(auditentry.SequenceLTE(0), auditentry.Or(auditentry.HashNotNil(), auditentry.PreviousHashNotNil())).Count(ctx)
	if err != nil {
		return err
	}
	if taken > 0 {
		v.broken(0, "%d entries were taken out of the trail: their number was changed to 0 or less", taken)
	}
	var now Origin
	if err := v.trail.countUnchained(ctx, from, &now); err != nil {
		return err
	}
	v.report.Unchained = now.Unchained
	if !v.trail.marked {
		return v.checkNewer(ctx)
	}
	var then Origin
	if v.report.Origin != nil {
		then = *v.report.Origin
	}
	switch {
	case now.Unchained > then.Unchained:
		v.broken(0, "%d entries without a place in the trail were added: there were %d when it began", now.Unchained-then.Unchained, then.Unchained)
	case now.Unchained < then.Unchained:
		v.broken(0, "%d of the %d entries from before the trail were removed", then.Unchained-now.Unchained, then.Unchained)
	case !bytes.Equal(now.UnchainedHash, then.UnchainedHash):
		v.broken(0, "entries from before the trail were edited or replaced")
	}
	return nil
}

// checkNewer is for stores without origins. It finds entries outside the chain that are newer than its beginning.
func (v *verification) checkNewer(ctx context.Context) error {
	if v.report.Unchained == 0 || v.report.Entries == 0 {
		return nil
	}
	newer, err := v.trail.store.Reader.AuditEntry.Query().Where(unchained, auditentry.AtGT(v.report.First)).Count(ctx)
	if err == nil && newer > 0 {
		v.broken(0, "%d entries without a place in the trail are younger than its beginning: they were added", newer)
	}
	return err
}
