package connect

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/column"
	"github.com/palisade/palisade/ent/scmapp"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
)

// ConfigMessages converts configurations with their applications, which one query reads.
func ConfigMessages(ctx context.Context, db *ent.Client, rows ...*ent.ScmConfig) ([]*scmv1.ScmConfig, error) {
	var ids []int64
	for _, row := range rows {
		if row.ScmAppID != nil {
			ids = append(ids, *row.ScmAppID)
		}
	}
	apps := map[int64]*scmv1.ScmApp{}
	if len(ids) > 0 {
		found, err := db.ScmApp.Query().Where(store.OneOf(scmapp.FieldID, ids)).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, app := range found {
			apps[app.ID] = AppMessage(app)
		}
	}
	out := make([]*scmv1.ScmConfig, len(rows))
	for i, row := range rows {
		config, err := convertConfig(row)
		if err != nil {
			return nil, err
		}
		if row.ScmAppID != nil {
			config.App = apps[*row.ScmAppID]
		}
		out[i] = config
	}
	return out, nil
}

// ConfigMessage converts one configuration.
func ConfigMessage(ctx context.Context, db *ent.Client, row *ent.ScmConfig) (*scmv1.ScmConfig, error) {
	out, err := ConfigMessages(ctx, db, row)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func convertConfig(row *ent.ScmConfig) (*scmv1.ScmConfig, error) {
	scopes, err := ScopesOf(row)
	if err != nil {
		return nil, err
	}
	return &scmv1.ScmConfig{
		Id: row.ID, Type: TypeOf(row.Type), Namespace: row.Namespace, SourceId: row.SourceID, BaseUrl: row.BaseURL,
		Status: statusOf(row), Installed: Installed(row), Suspended: Suspended(row),
		GithubEntityType: gitHubEntity[host.Entity(row.EntityType)], VendorEntityType: vendorEntity[host.Entity(row.EntityType)],
		AutoScan: row.AutoScan, UseNetworkBroker: row.UseNetworkBroker, TokenScopes: scopes,
		Subscriptions: SubscriptionMessages(row.Subscriptions), LastSuccessfulSyncAt: store.Timestamp(row.LastSuccessfulSyncAt),
		AutoScanSettings: &scmv1.AutoScanSettings{DiffEnabled: &row.DiffEnabled},
		HasAccessToken:   len(row.AccessToken) > 0, ScmId: row.ScmID,
	}, nil
}

// The specification and the published API have different words for the same value; answers contain both.
var (
	gitHubEntity = map[host.Entity]scmv1.GithubEntityType{
		host.Org: scmv1.GithubEntityType_GITHUB_ENTITY_TYPE_ORG, host.User: scmv1.GithubEntityType_GITHUB_ENTITY_TYPE_USER,
	}
	vendorEntity = map[host.Entity]scmv1.VendorEntityType{
		host.Org: scmv1.VendorEntityType_VENDOR_ENTITY_TYPE_ORG, host.User: scmv1.VendorEntityType_VENDOR_ENTITY_TYPE_USER,
	}
)

// AppMessage converts an application.
func AppMessage(row *ent.ScmApp) *scmv1.ScmApp {
	return &scmv1.ScmApp{
		Id: row.ID, Slug: row.Slug, AppId: row.AppID, ScmType: TypeOf(row.ScmType), BaseUrl: row.BaseURL, RequestId: row.RequestID,
		ScmName: row.Name, CodeAccess: row.CodeAccess, TenantId: row.TenantID,
	}
}

// statusOf is nil before the first check.
func statusOf(row *ent.ScmConfig) *scmv1.ScmStatus {
	if row.CheckedAt == nil {
		return nil
	}
	return &scmv1.ScmStatus{Checked: store.Timestamp(row.CheckedAt), Ok: row.CheckOk, Error: row.CheckError}
}

// ScopesOf is nil before the first successful check.
func ScopesOf(row *ent.ScmConfig) (*scmv1.ScmTokenScopes, error) {
	if len(row.TokenScopes) == 0 && !row.CheckOk { // a token without scopes is also stored as no bytes
		return nil, nil
	}
	scopes := &scmv1.ScmTokenScopes{}
	if err := proto.Unmarshal(row.TokenScopes, scopes); err != nil {
		return nil, fmt.Errorf("token scopes of configuration %d: %w", row.ID, err)
	}
	return scopes, nil
}

// SubscriptionMessages converts webhooks.
func SubscriptionMessages(stored []column.ScmSubscription) []*scmv1.ScmWebhookSubscription {
	var out []*scmv1.ScmWebhookSubscription
	for _, s := range stored {
		out = append(out, &scmv1.ScmWebhookSubscription{ScmUrl: s.URL, Events: s.Events})
	}
	return out
}

// Audited writes an audit entry for a configuration change. before or after may be nil. The entry has the form of the
// API.
func (c *Hosts) Audited(ctx context.Context, tx *ent.Tx, before, after *ent.ScmConfig) error {
	var sides [2]*scmv1.ScmConfig
	var id int64
	for i, row := range []*ent.ScmConfig{before, after} {
		if row == nil {
			continue
		}
		config, err := ConfigMessage(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		sides[i], id = config, row.ID
	}
	switch {
	case sides[0] == nil:
		audit.Change(ctx, AuditConfig, id, nil, sides[1])
	case sides[1] == nil:
		audit.Change(ctx, AuditConfig, id, sides[0], nil)
	default:
		audit.Change(ctx, AuditConfig, id, sides[0], sides[1])
	}
	return nil
}
