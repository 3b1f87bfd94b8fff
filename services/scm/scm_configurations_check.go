package scm

import (
	"bytes"
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/column"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// CheckScmConfig calls the host and stores the result.
func (s *Configurations) CheckScmConfig(ctx context.Context, r *scmv1.CheckScmConfigRequest) (*scmv1.CheckScmConfigResponse, error) {
	row, err := named(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	found, err := s.runCheck(ctx, row)
	if err != nil {
		return nil, err
	}
	if err := s.storeCheck(ctx, row, found); err != nil {
		return nil, err
	}
	if err := s.refreshApp(ctx, row); err != nil {
		return nil, err
	}
	return &scmv1.CheckScmConfigResponse{
		Status:      &scmv1.ScmStatus{Checked: store.Timestamp(&found.at), Ok: found.failure == "", Error: found.failure},
		TokenScopes: found.account.Scopes,
	}, nil
}

// checked is the result of a check.
type checked struct {
	at int64 // microseconds since 1970
	// failure is the host's error for people; empty if there is none.
	failure string
	account host.Account
	// subscriptions are this configuration's webhooks; nil if they could not be read.
	subscriptions []column.ScmSubscription
}

// runCheck makes the requests of a check. A host's refusal or failure is a result. An error is an unsupported type of
// host, or an internal error.
func (s *Configurations) runCheck(ctx context.Context, row *ent.ScmConfig) (found checked, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found.at = store.Now()
	h, err := s.Open(ctx, row)
	if err == nil {
		found.account, err = h.Check(ctx, row.Namespace)
	}
	if err != nil {
		found.failure = connect.ErrorText(err)
		if found.failure == "" || host.Is(err, host.Unsupported) {
			return checked{}, hostError(err)
		}
		found.account = host.Account{}
		return found, nil
	}
	if found.account.Scopes.GetManageWebhooks() && row.WebhookKey != "" {
		found.subscriptions, err = s.webhooks.ownWebhooks(ctx, h, row)
		// The check itself has succeeded. Plans without webhooks refuse this request regardless of the token's scopes.
		if err != nil && connect.ErrorText(err) == "" {
			return checked{}, err
		}
	}
	return found, nil
}

// storeCheck writes the result, unless the connection was changed since it was read: the result would be about another
// connection.
func (s *Configurations) storeCheck(ctx context.Context, asked *ent.ScmConfig, found checked) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err := s.lock(ctx, tx, asked.ID)
		if err != nil {
			return err
		}
		if !sameConnection(before, asked) {
			return nil
		}
		update := before.Update().SetCheckedAt(found.at).SetCheckOk(found.failure == "").SetCheckError(found.failure)
		if found.failure == "" {
			scopes, err := proto.Marshal(found.account.Scopes)
			if err != nil {
				return err
			}
			update.SetScmID(found.account.ID).SetEntityType(string(found.account.Entity)).SetTokenScopes(scopes)
		}
		if found.subscriptions != nil && sameReceiver(before, asked) {
			update.SetSubscriptions(found.subscriptions)
		}
		after, err := update.Save(ctx)
		if err != nil {
			return err
		}
		return s.Audited(ctx, tx, before, after)
	})
}

// sameConnection reports whether two versions of a row have the same namespace and credential.
func sameConnection(a, b *ent.ScmConfig) bool {
	return a.Namespace == b.Namespace && bytes.Equal(a.AccessToken, b.AccessToken)
}
