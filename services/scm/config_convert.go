package scm

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/column"
	"github.com/palisade/palisade/ent/scmapp"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// convertConfigs converts configurations with their applications, which one query reads.
func convertConfigs(ctx context.Context, db *ent.Client, rows ...*ent.ScmConfig) ([]*scmv1.ScmConfig, error) {
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
			apps[app.ID] = appOfConfig(app)
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

// convertOne converts one configuration.
func convertOne(ctx context.Context, db *ent.Client, row *ent.ScmConfig) (*scmv1.ScmConfig, error) {
	out, err := convertConfigs(ctx, db, row)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func convertConfig(row *ent.ScmConfig) (*scmv1.ScmConfig, error) {
	scopes, err := scopesOf(row)
	if err != nil {
		return nil, err
	}
	return &scmv1.ScmConfig{
		Id: row.ID, Type: connect.TypeOf(row.Type), Namespace: row.Namespace, SourceId: row.SourceID, BaseUrl: row.BaseURL,
		Status: statusOf(row), Installed: row.Installed, Suspended: row.Suspended,
		GithubEntityType: gitHubEntity[host.Entity(row.EntityType)], VendorEntityType: vendorEntity[host.Entity(row.EntityType)],
		AutoScan: row.AutoScan, UseNetworkBroker: row.UseNetworkBroker, TokenScopes: scopes,
		Subscriptions: subscriptionsOf(row.Subscriptions), LastSuccessfulSyncAt: instant(row.LastSuccessfulSyncAt),
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

func appOfConfig(row *ent.ScmApp) *scmv1.ScmApp {
	return &scmv1.ScmApp{
		Id: row.ID, Slug: row.Slug, AppId: row.AppID, ScmType: connect.TypeOf(row.ScmType), BaseUrl: row.BaseURL, RequestId: row.RequestID,
		ScmName: row.Name, CodeAccess: row.CodeAccess, TenantId: row.TenantID,
	}
}

// statusOf is nil before the first check.
func statusOf(row *ent.ScmConfig) *scmv1.ScmStatus {
	if row.CheckedAt == nil {
		return nil
	}
	return &scmv1.ScmStatus{Checked: instant(row.CheckedAt), Ok: row.CheckOk, Error: row.CheckError}
}

// scopesOf is nil before the first successful check.
func scopesOf(row *ent.ScmConfig) (*scmv1.ScmTokenScopes, error) {
	if len(row.TokenScopes) == 0 && !row.CheckOk { // a token without scopes is also stored as no bytes
		return nil, nil
	}
	scopes := &scmv1.ScmTokenScopes{}
	if err := proto.Unmarshal(row.TokenScopes, scopes); err != nil {
		return nil, fmt.Errorf("token scopes of configuration %d: %w", row.ID, err)
	}
	return scopes, nil
}

func subscriptionsOf(stored []column.ScmSubscription) []*scmv1.ScmWebhookSubscription {
	var out []*scmv1.ScmWebhookSubscription
	for _, s := range stored {
		out = append(out, &scmv1.ScmWebhookSubscription{ScmUrl: s.URL, Events: s.Events})
	}
	return out
}

func instant(micros *int64) *timestamppb.Timestamp {
	if micros == nil {
		return nil
	}
	return timestamppb.New(store.Time(*micros))
}
