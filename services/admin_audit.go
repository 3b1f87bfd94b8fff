package services

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/platform"
)

// auditPage is how many entries ReadAudit reads at a time.
const auditPage = 500

// AuditReport is what VerifyAudit found in the audit trail of one deployment.
type AuditReport struct {
	// Deployment is the slug; of a deployment that is gone, its number.
	Deployment string
	// Entries is how many entries are as they were written, up to the first broken place; Unchained is how many more were
	// written before there was a chain.
	Entries, Unchained int64
	// First and Last are the times of the first and the last good entry; zero without entries.
	First, Last time.Time
	// Sequence and Hash are the last good entry's; Hash is hexadecimal.
	Sequence int64
	Hash     string
	// Broken says where and how the trail was tampered with; empty for one that is whole.
	Broken string
}

// AuditAnchor is an entry that is known from an earlier verification. The zero AuditAnchor is none.
type AuditAnchor struct {
	Sequence int64
	Hash     []byte
}

// VerifyAudit checks the audit trails of all deployments, or of one. Each is called for each deployment, progress now and
// then in between; an error of each ends the verification. A running server is not disturbed.
func VerifyAudit(ctx context.Context, cfg Config, slug string, known AuditAnchor,
	progress func(deployment string, entries int64), each func(AuditReport) error,
) error {
	return plainText(withStore(ctx, cfg, func(st *store.Store) error {
		keyring, err := secret.OpenFor(ctx, st, cfg.KeyPath())
		if err != nil {
			return err
		}
		trail, err := audit.Open(ctx, st, keyring, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		trails, err := auditTrails(ctx, st, slug)
		if err != nil {
			return err
		}
		for _, d := range trails {
			found, err := trail.Verify(ctx, d.ID, audit.Anchor(known), func(entries int64) { progress(d.Slug, entries) })
			if err != nil {
				return err
			}
			if err := each(auditReport(d.Slug, found)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func auditReport(slug string, found audit.Report) AuditReport {
	out := AuditReport{
		Deployment: slug, Entries: found.Entries, Unchained: found.Unchained,
		Sequence: found.Sequence, Hash: hex.EncodeToString(found.Hash),
	}
	if found.Entries > 0 {
		out.First, out.Last = store.Time(found.First), store.Time(found.Last)
	}
	if found.Broken != nil {
		out.Broken = found.Broken.Reason
	}
	return out
}

// auditTrails lists the deployments that have or could have a trail, those too of which only the trail is left.
func auditTrails(ctx context.Context, st *store.Store, slug string) ([]*ent.Deployment, error) {
	if slug != "" {
		one, err := access.NewTokens(st).DeploymentBySlug(ctx, slug)
		return []*ent.Deployment{one}, err
	}
	ctx = tenant.System(ctx)
	list, err := st.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	heads, err := st.Reader.AuditHead.Query().All(ctx)
	if err != nil {
		return nil, err
	}
	known := map[int64]bool{}
	for _, d := range list {
		known[d.ID] = true
	}
	for _, head := range heads {
		if !known[head.DeploymentID] {
			list = append(list, &ent.Deployment{ID: head.DeploymentID, Slug: fmt.Sprintf("deployment %d (deleted)", head.DeploymentID)})
		}
	}
	return list, nil
}

// ReadAudit reads the entries of a deployment that match the filter of the request, whose deployment, cursor and limit
// are not looked at, and calls each for them: the newest first, or the oldest. An error of each
// ends it; fs.SkipAll ends it without an error.
func ReadAudit(ctx context.Context, cfg Config, slug string, filter *platformv1.ListAuditEntriesRequest, oldestFirst bool,
	each func(*platformv1.AuditEntry) error,
) error {
	return plainText(withStore(ctx, cfg, func(st *store.Store) error {
		of, err := access.NewTokens(st).DeploymentBySlug(ctx, slug)
		if err != nil {
			return err
		}
		r := auditReader{ctx: tenant.NewContext(ctx, of.ID), store: st, filter: filter, oldestFirst: oldestFirst}
		return r.read(each)
	}))
}

// auditReader walks along the index by time.
type auditReader struct {
	ctx         context.Context
	store       *store.Store
	filter      *platformv1.ListAuditEntriesRequest
	oldestFirst bool
}

func (r auditReader) read(each func(*platformv1.AuditEntry) error) error {
	var last *ent.AuditEntry
	for {
		rows, err := r.page(last)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if !platform.AuditMatches(r.filter, row) {
				continue
			}
			entry, err := platform.AuditEntryOf(row)
			if err == nil {
				err = each(entry)
			}
			if errors.Is(err, fs.SkipAll) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		if len(rows) < auditPage {
			return nil
		}
		last = rows[len(rows)-1]
	}
}

func (r auditReader) page(last *ent.AuditEntry) ([]*ent.AuditEntry, error) {
	compare, order := entsql.CompositeLT, ent.Desc(auditentry.FieldAt, auditentry.FieldID)
	if r.oldestFirst {
		compare, order = entsql.CompositeGT, ent.Asc(auditentry.FieldAt, auditentry.FieldID)
	}
	query := r.store.Reader.AuditEntry.Query().Where(platform.AuditFilter(r.filter)...).Order(order).Limit(auditPage)
	if last != nil {
		query.Where(predicate.AuditEntry(func(s *entsql.Selector) {
			s.Where(compare([]string{s.C(auditentry.FieldAt), s.C(auditentry.FieldID)}, last.At, last.ID))
		}))
	}
	return query.All(r.ctx)
}
