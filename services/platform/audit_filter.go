package platform

import (
	"encoding/json"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/column"
	"github.com/palisade/palisade/ent/predicate"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// AuditFilter converts the filter of a request to conditions. A filter by object may match too many entries: see
// AuditMatches.
func AuditFilter(r *platformv1.ListAuditEntriesRequest) []predicate.AuditEntry {
	return append(inTime(r), exceptTime(r)...)
}

func exceptTime(r *platformv1.ListAuditEntriesRequest) (where []predicate.AuditEntry) {
	if r.GetActor() != "" {
		where = append(where, actorIs(r.GetActor()))
	}
	if method := r.GetMethod(); method != "" {
		where = append(where, auditentry.Or(auditentry.Method(method), auditentry.MethodHasSuffix("/"+method)))
	}
	if r.GetObjectKind() != "" {
		where = append(where, changes(r.GetObjectKind(), r.GetObjectId()))
	}
	if r.GetRequestId() != "" {
		where = append(where, auditentry.RequestID(r.GetRequestId()))
	}
	if r.GetCode() != "" {
		where = append(where, auditentry.Code(r.GetCode()))
	}
	return where
}

// AuditMatches reports whether an entry changed the requested object. The database only searches text, and an object
// may be part of another.
func AuditMatches(r *platformv1.ListAuditEntriesRequest, row *ent.AuditEntry) bool {
	if r.GetObjectKind() == "" {
		return true
	}
	for _, change := range row.Changes {
		if change.Kind == r.GetObjectKind() && (r.GetObjectId() == "" || change.ID == r.GetObjectId()) {
			return true
		}
	}
	return false
}

func inTime(r *platformv1.ListAuditEntriesRequest) (where []predicate.AuditEntry) {
	if r.GetSince() != nil {
		where = append(where, auditentry.AtGTE(store.Micros(r.GetSince().AsTime())))
	}
	if r.GetUntil() != nil {
		where = append(where, auditentry.AtLT(store.Micros(r.GetUntil().AsTime())))
	}
	return where
}

// actorIs parses "token", "token:7" or a name.
func actorIs(text string) predicate.AuditEntry {
	kind, number, numbered := strings.Cut(text, ":")
	switch kind {
	case string(access.KindUser), string(access.KindToken), audit.KindJob, audit.KindHost, audit.KindOperator:
		if !numbered {
			return auditentry.Or(auditentry.ActorKind(kind), auditentry.ActorName(text))
		}
		if id, err := strconv.ParseInt(number, 10, 64); err == nil {
			return auditentry.And(auditentry.ActorKind(kind), auditentry.ActorID(id))
		}
	}
	return auditentry.ActorName(text)
}

// changes searches the stored text for the beginning of a change, as encoding/json writes it.
func changes(kind, id string) predicate.AuditEntry {
	text, err := json.Marshal(column.AuditChange{Kind: kind, ID: id})
	wanted := strings.TrimSuffix(string(text), "}")
	if id == "" {
		wanted = strings.TrimSuffix(wanted, `""`)
	}
	return func(s *entsql.Selector) {
		if err != nil {
			s.Where(entsql.False())
			return
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			if s.Dialect() == dialect.Postgres {
				b.WriteString("STRPOS(").Ident(s.C(auditentry.FieldChanges)).WriteString("::text, ").Arg(wanted).WriteString(") > 0")
				return
			}
			b.WriteString("INSTR(").Ident(s.C(auditentry.FieldChanges)).WriteString(", ").Arg(wanted).WriteString(") > 0")
		}))
	}
}
