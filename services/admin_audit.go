package services

import (
	"context"
	"errors"
	"io/fs"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/platform"
)

// auditPage is the number of entries that ReadAudit reads at a time.
const auditPage = 500

// ReadAudit calls each for the audit entries of a deployment that match the filter, newest first unless it asks for
// oldest first. It ignores the deployment, cursor and limit of the filter. An error of each stops ReadAudit; fs.SkipAll
// stops it without an error. Tampered entries are skipped; withheld is their number.
func ReadAudit(ctx context.Context, cfg config.Config, slug string, filter *platformv1.ListAuditEntriesRequest, oldestFirst bool,
	each func(*platformv1.AuditEntry) error,
) (withheld int, err error) {
	err = apierr.Plain(withStore(ctx, cfg, func(st *store.Store) error {
		of, err := access.NewTokens(st).DeploymentBySlug(ctx, slug)
		if err != nil {
			return err
		}
		trail, err := readTrail(ctx, cfg, st)
		if err != nil {
			return err
		}
		r := auditReader{ctx: tenant.NewContext(ctx, of.ID), deployment: of.ID, store: st, trail: trail, filter: filter, oldestFirst: oldestFirst}
		err = r.read(each)
		withheld = r.withheld
		return err
	}))
	return withheld, err
}

// auditReader reads pages along the index by time.
type auditReader struct {
	ctx         context.Context
	deployment  int64
	store       *store.Store
	trail       *audit.Trail
	withheld    int
	filter      *platformv1.ListAuditEntriesRequest
	oldestFirst bool
}

func (r *auditReader) read(each func(*platformv1.AuditEntry) error) error {
	var last *ent.AuditEntry
	for {
		rows, err := r.page(last)
		if err != nil {
			return err
		}
		good, withheld, err := r.trail.Listed(r.ctx, r.deployment, rows)
		if err != nil {
			return err
		}
		r.withheld += withheld
		for _, row := range good {
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

func (r *auditReader) page(last *ent.AuditEntry) ([]*ent.AuditEntry, error) {
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
