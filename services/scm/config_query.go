package scm

import (
	"context"
	"encoding/base64"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scmconfig"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/scm/connect"
)

const defaultPageSize = 100

// ListScmConfig lists all configurations.
func (s *Configurations) ListScmConfig(ctx context.Context, r *scmv1.ListScmConfigRequest) (*scmv1.ListScmConfigResponse, error) {
	rows, cursor, err := s.list(ctx, &scmv1.SearchScmConfigRequest{
		DeploymentId: r.GetDeploymentId(), Cursor: r.GetCursor(), Limit: r.GetLimit(), SortBy: r.GetSortBy(), SortDirection: r.GetSortDirection(),
	})
	return &scmv1.ListScmConfigResponse{Configs: rows, Cursor: cursor}, err
}

// SearchScmConfig lists the configurations that match a filter.
func (s *Configurations) SearchScmConfig(ctx context.Context, r *scmv1.SearchScmConfigRequest) (*scmv1.SearchScmConfigResponse, error) {
	rows, cursor, err := s.list(ctx, r)
	return &scmv1.SearchScmConfigResponse{Configs: rows, Cursor: cursor}, err
}

func (s *Configurations) list(ctx context.Context, r *scmv1.SearchScmConfigRequest) ([]*scmv1.ScmConfig, string, error) {
	order := configOrder{by: r.GetSortBy(), descending: r.GetSortDirection() == scmv1.SortDirection_SORT_DIRECTION_DESC}
	digest, err := listDigest(r)
	if err != nil {
		return nil, "", err
	}
	query := s.store.Reader.ScmConfig.Query().Where(configFilter(r.GetFilter())...)
	if r.GetCursor() != "" {
		after, err := order.decode(digest, r.GetCursor())
		if err != nil {
			return nil, "", err
		}
		query.Where(after)
	}
	size := int(r.GetLimit())
	if size == 0 {
		size = defaultPageSize
	}
	// One extra row shows whether there is another page.
	rows, err := query.Order(order.apply).Limit(size + 1).All(ctx)
	if err != nil {
		return nil, "", err
	}
	cursor := ""
	if len(rows) > size {
		rows = rows[:size]
		cursor = order.encode(digest, rows[size-1])
	}
	configs, err := connect.ConfigMessages(ctx, s.store.Reader, rows...)
	return configs, cursor, err
}

// listDigest binds a cursor to the request, except the cursor and the page size.
func listDigest(r *scmv1.SearchScmConfigRequest) (page.Digest, error) {
	filter, _ := proto.Clone(r).(*scmv1.SearchScmConfigRequest)
	filter.Cursor, filter.Limit = "", 0
	return page.DigestOf("scm configs", filter)
}

func configFilter(f *scmv1.SearchScmConfigRequestFilter) []predicate.ScmConfig {
	var where []predicate.ScmConfig
	if f.GetNamespace() != "" {
		where = append(where, scmconfig.NamespaceContainsFold(f.GetNamespace()))
	}
	if f.GetType() != scmv1.ScmType_SCM_TYPE_UNSPECIFIED {
		where = append(where, scmconfig.Type(f.GetType().String()))
	}
	if f != nil && f.StatusOk != nil {
		where = append(where, scmconfig.CheckOk(f.GetStatusOk()))
	}
	return where
}

// configOrder is the sort order of a list. The id breaks ties, in the same direction.
type configOrder struct {
	by         scmv1.ScmConfigSortBy
	descending bool
}

func (o configOrder) apply(s *entsql.Selector) {
	direction := ""
	if o.descending {
		direction = " DESC"
	}
	if column := o.column(s); column != "" {
		s.OrderExpr(entsql.Expr(column + direction))
	}
	s.OrderExpr(entsql.Expr(s.C(scmconfig.FieldID) + direction))
}

// column is the sort column before the id; empty if there is none. A configuration that was never synchronized sorts as
// 1970 on both databases.
func (o configOrder) column(s *entsql.Selector) string {
	switch o.by {
	case scmv1.ScmConfigSortBy_SCM_CONFIG_SORT_BY_NAME:
		return s.C(scmconfig.FieldNamespace)
	case scmv1.ScmConfigSortBy_SCM_CONFIG_SORT_BY_LAST_SUCCESSFUL_SYNC_AT:
		return "COALESCE(" + s.C(scmconfig.FieldLastSuccessfulSyncAt) + ", 0)"
	}
	return ""
}

// after selects the rows after a cursor position.
func (o configOrder) after(value any, id int64) predicate.ScmConfig {
	return func(s *entsql.Selector) {
		sign := " > "
		if o.descending {
			sign = " < "
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			column := o.column(s)
			if column == "" {
				b.WriteString(s.C(scmconfig.FieldID) + sign).Arg(id)
				return
			}
			b.WriteString("("+column+", "+s.C(scmconfig.FieldID)+")"+sign+"(").Args(value, id).WriteString(")")
		}))
	}
}

// encode builds the cursor of a row: the key of package page, followed by the namespace if that is the sort column.
func (o configOrder) encode(digest page.Digest, row *ent.ScmConfig) string {
	key := page.Key{ID: row.ID}
	if o.by == scmv1.ScmConfigSortBy_SCM_CONFIG_SORT_BY_LAST_SUCCESSFUL_SYNC_AT && row.LastSuccessfulSyncAt != nil {
		key.Order = *row.LastSuccessfulSyncAt
	}
	cursor := page.Encode(digest, key)
	if o.by == scmv1.ScmConfigSortBy_SCM_CONFIG_SORT_BY_NAME {
		cursor += "." + base64.RawURLEncoding.EncodeToString([]byte(row.Namespace))
	}
	return cursor
}

func (o configOrder) decode(digest page.Digest, cursor string) (predicate.ScmConfig, error) {
	place, name, named := strings.Cut(cursor, ".")
	key, ok, err := page.Decode(digest, place)
	if err != nil {
		return nil, err
	}
	namespace, err := base64.RawURLEncoding.Strict().DecodeString(name)
	if err != nil || !ok || named != (o.by == scmv1.ScmConfigSortBy_SCM_CONFIG_SORT_BY_NAME) {
		return nil, apierr.InvalidCursor("cursor")
	}
	if named {
		return o.after(string(namespace), key.ID), nil
	}
	return o.after(key.Order, key.ID), nil
}
