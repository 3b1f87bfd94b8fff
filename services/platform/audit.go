package platform

import (
	"context"
	"log/slog"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	defaultAuditLimit = 100
	// auditWindow is the number of entries that one page examines if the filter has no index. Finding rare entries in a
	// long trail then takes many short requests instead of one endless request.
	auditWindow = 20_000
)

// Audit is the service group "audit".
type Audit struct {
	platformv1.UnimplementedAuditServiceServer
	store *store.Store
	trail *audit.Trail
	log   *slog.Logger
}

// NewAudit serves the audit trail from the store; trail verifies which entries the server wrote.
func NewAudit(st *store.Store, trail *audit.Trail, log *slog.Logger) *Audit {
	return &Audit{store: st, trail: trail, log: log}
}

// ListAuditEntries lists entries, newest first.
func (s *Audit) ListAuditEntries(ctx context.Context, r *platformv1.ListAuditEntriesRequest) (*platformv1.ListAuditEntriesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("audit", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.AuditEntry.Query().Where(inTime(r)...)
	if continued {
		query.Where(auditBefore(key))
	}
	query.Order(ent.Desc(auditentry.FieldAt, auditentry.FieldID))
	end, err := windowEnd(ctx, r, query)
	if err != nil {
		return nil, err
	}
	if end != nil {
		query.Where(auditNotBefore(*end))
	}
	limit := defaultAuditLimit
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	rows, err := query.Where(exceptTime(r)...).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &platformv1.ListAuditEntriesResponse{}
	switch {
	case len(rows) > limit:
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{Order: rows[limit-1].At, ID: rows[limit-1].ID})
	case end != nil:
		out.Cursor = page.Encode(digest, *end)
	}
	rows, withheld, err := s.trail.Listed(ctx, r.GetDeploymentId(), rows)
	if err != nil {
		return nil, err
	}
	if withheld > 0 {
		out.Withheld = int32(withheld)
		s.log.ErrorContext(ctx, "audit entries that were edited, moved or added outside of Palisade are not shown (see: palisade audit verify)", "entries", withheld)
	}
	for _, row := range rows {
		if !AuditMatches(r, row) {
			continue
		}
		entry, err := AuditEntryOf(row)
		if err != nil {
			return nil, err
		}
		out.Entries = append(out.Entries, entry)
	}
	return out, nil
}

// windowEnd returns the last entry that this page examines; nil if it may examine all, because the filter has an index
// or there are few entries.
func windowEnd(ctx context.Context, r *platformv1.ListAuditEntriesRequest, query *ent.AuditEntryQuery) (*page.Key, error) {
	if r.GetRequestId() != "" || r.GetActor()+r.GetMethod()+r.GetObjectKind()+r.GetCode() == "" {
		return nil, nil
	}
	var last []struct {
		At int64 `sql:"at"`
		ID int64 `sql:"id"`
	}
	err := query.Clone().Offset(auditWindow-1).Limit(1).Select(auditentry.FieldAt, auditentry.FieldID).Scan(ctx, &last)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	return &page.Key{Order: last[0].At, ID: last[0].ID}, nil
}

func auditBefore(key page.Key) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		s.Where(entsql.CompositeLT([]string{s.C(auditentry.FieldAt), s.C(auditentry.FieldID)}, key.Order, key.ID))
	}
}

func auditNotBefore(key page.Key) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		s.Where(entsql.CompositeGT([]string{s.C(auditentry.FieldAt), s.C(auditentry.FieldID)}, key.Order, key.ID-1))
	}
}
