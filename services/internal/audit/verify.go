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

// verifyPage is how many entries are read at a time.
const verifyPage = 500

// Report is what Verify found in the chain of one deployment.
type Report struct {
	// Entries is how many entries of the chain are as they were written, up to the first broken place.
	Entries int64
	// Unchained is how many entries were written before there was a chain; nothing protects them.
	Unchained int64
	// First and Last are the times of the first and the last good entry, in microseconds; 0 without entries.
	First, Last int64
	// Sequence and Hash are those of the last good entry. Whoever keeps them elsewhere can prove later that nothing up to
	// here was removed (see Anchor).
	Sequence int64
	Hash     []byte
	// Broken is nil for a chain that is whole.
	Broken *Broken
}

// Broken is the first place where a chain is not as it was written.
type Broken struct {
	// Sequence is the entry that shows it.
	Sequence int64
	// Reason says what is wrong there, for people.
	Reason string
}

// Anchor is an entry that is known from elsewhere, such as the end of the chain at an earlier verification. The zero
// Anchor is none.
type Anchor struct {
	Sequence int64
	Hash     []byte
}

// Verify walks the chain of a deployment from its beginning. It reads while others append: what comes after it has begun
// may or may not be part of the report. Progress is called now and then with the number of entries so far; it may be nil.
func (t *Trail) Verify(ctx context.Context, deploymentID int64, anchor Anchor, progress func(entries int64)) (Report, error) {
	v := &verification{trail: t, anchor: anchor, progress: progress}
	err := v.run(tenant.NewContext(ctx, deploymentID))
	if err != nil {
		return Report{}, fmt.Errorf("verify the audit trail: %w", err)
	}
	return v.report, nil
}

type verification struct {
	trail    *Trail
	anchor   Anchor
	progress func(int64)
	report   Report
}

func (v *verification) broken(sequence int64, format string, args ...any) {
	v.report.Broken = &Broken{Sequence: sequence, Reason: fmt.Sprintf(format, args...)}
}

// run walks up to a head, again and again while the chain grows: a head that is read after the last entry must not be
// older than that.
func (v *verification) run(ctx context.Context) error {
	for {
		head, err := v.trail.store.Reader.AuditHead.Query().Only(ctx)
		if ent.IsNotFound(err) {
			head, err = nil, nil
		}
		if err != nil {
			return err
		}
		before := v.report.Sequence
		if err := v.walk(ctx); err != nil || v.report.Broken != nil {
			return err
		}
		if v.report.Sequence > before && (head == nil || head.Sequence < v.report.Sequence) {
			continue // entries came while we walked; their head is there, too
		}
		v.checkHead(head)
		if v.report.Broken != nil {
			return nil
		}
		v.checkAnchor()
		return v.countUnchained(ctx)
	}
}

// walk reads what follows the last good entry.
func (v *verification) walk(ctx context.Context) error {
	for {
		rows, err := v.next(ctx, verifyPage)
		if err != nil && ctx.Err() == nil {
			rows, err = v.readable(ctx, err)
		}
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := v.entry(row); err != nil || v.report.Broken != nil {
				return err
			}
		}
		if v.progress != nil {
			v.progress(v.report.Entries)
		}
		if v.report.Broken != nil || len(rows) < verifyPage {
			return nil
		}
	}
}

func (v *verification) next(ctx context.Context, limit int) ([]*ent.AuditEntry, error) {
	return v.trail.store.Reader.AuditEntry.Query().Where(chained, auditentry.SequenceGT(v.report.Sequence)).
		Order(ent.Asc(auditentry.FieldSequence)).Limit(limit).All(ctx)
}

// readable deals with a page that cannot be read, by looking for the entry that someone made unreadable (broken JSON).
func (v *verification) readable(ctx context.Context, cause error) ([]*ent.AuditEntry, error) {
	for {
		rows, err := v.next(ctx, 1)
		if err == nil {
			if len(rows) == 0 {
				return nil, cause // it was not an entry
			}
			if err := v.entry(rows[0]); err != nil || v.report.Broken != nil {
				return nil, err
			}
			continue
		}
		var sequences []int64
		scanErr := v.trail.store.Reader.AuditEntry.Query().Where(chained, auditentry.SequenceGT(v.report.Sequence)).
			Order(ent.Asc(auditentry.FieldSequence)).Limit(1).Select(auditentry.FieldSequence).Scan(ctx, &sequences)
		if scanErr != nil || len(sequences) == 0 || ctx.Err() != nil {
			return nil, cause
		}
		v.broken(sequences[0], "entry #%d was edited: it cannot be read any more (%v)", sequences[0], err)
		return nil, nil
	}
}

// entry checks one entry against itself and the one before.
func (v *verification) entry(e *ent.AuditEntry) error {
	r := &v.report
	want, err := v.trail.hash(e)
	if err != nil {
		return err
	}
	switch {
	case e.Sequence == r.Sequence+2:
		v.broken(e.Sequence, "entry #%d was removed", r.Sequence+1)
	case e.Sequence != r.Sequence+1:
		v.broken(e.Sequence, "entries #%d to #%d were removed", r.Sequence+1, e.Sequence-1)
	case !hmac.Equal(want, e.Hash):
		v.broken(e.Sequence, "entry #%d was edited, moved here or added", e.Sequence)
	case !bytes.Equal(e.PreviousHash, r.Hash):
		v.broken(e.Sequence, "entry #%d does not follow entry #%d: one of them was replaced", e.Sequence, r.Sequence)
	case v.anchor.Sequence == e.Sequence && !hmac.Equal(v.anchor.Hash, e.Hash):
		v.broken(e.Sequence, "entry #%d is not the one that is known: the trail was replaced by another", e.Sequence)
	default:
		if r.Entries == 0 {
			r.First = e.At
		}
		r.Entries, r.Sequence, r.Last, r.Hash = r.Entries+1, e.Sequence, e.At, e.Hash
	}
	return nil
}

// checkHead compares the end of the walk with the head.
func (v *verification) checkHead(head *ent.AuditHead) {
	r := &v.report
	switch {
	case head == nil && r.Sequence == 0:
	case head == nil:
		v.broken(r.Sequence, "the head of the trail was removed; entries behind #%d may be missing", r.Sequence)
	case !v.trail.sealed(head):
		v.broken(r.Sequence, "the head of the trail was forged; entries behind #%d may be missing", r.Sequence)
	case head.Sequence > r.Sequence:
		v.broken(r.Sequence+1, "the end was cut off: %s missing", span(r.Sequence+1, head.Sequence))
	case head.Sequence < r.Sequence:
		v.broken(head.Sequence+1, "the head of the trail is an older one, of entry #%d: it was put back", head.Sequence)
	case !bytes.Equal(head.Hash, r.Hash):
		v.broken(r.Sequence, "the head of the trail is not that of entry #%d: it was put back from another copy", r.Sequence)
	}
}

func (v *verification) checkAnchor() {
	if v.anchor.Sequence > v.report.Sequence {
		v.broken(v.report.Sequence+1, "%s missing although #%d is known: the trail was cut off, or put back from an older copy",
			span(v.report.Sequence+1, v.anchor.Sequence), v.anchor.Sequence)
	}
}

func span(from, to int64) string {
	if from == to {
		return fmt.Sprintf("entry #%d is", from)
	}
	return fmt.Sprintf("entries #%d to #%d are", from, to)
}

// countUnchained counts what was written before the chain. Nobody has written any since: a younger one was added, or is
// an entry that was taken out of the chain.
func (v *verification) countUnchained(ctx context.Context) error {
	query := v.trail.store.Reader.AuditEntry.Query().Where(auditentry.SequenceLTE(0))
	n, err := query.Clone().Count(ctx)
	if err != nil {
		return err
	}
	v.report.Unchained = int64(n)
	if n == 0 || v.report.Entries == 0 || v.report.Broken != nil {
		return nil
	}
	younger, err := query.Where(auditentry.AtGT(v.report.First)).Count(ctx)
	if err == nil && younger > 0 {
		v.broken(0, "%d entries without a place in the trail are younger than its beginning: they were added", younger)
	}
	return err
}
