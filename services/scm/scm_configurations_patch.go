package scm

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
)

// PatchScmConfig changes the fields in the request (contract operation 4). Absent fields keep their value. Two
// concurrent patches of different fields both take effect.
func (s *Configurations) PatchScmConfig(ctx context.Context, r *scmv1.PatchScmConfigRequest) (*scmv1.PatchScmConfigResponse, error) {
	var row *ent.ScmConfig
	var moved bool
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		asked, err := named(ctx, tx.Client(), r.GetConfigId())
		if err != nil {
			return err
		}
		before, err := s.lock(ctx, tx, asked.ID)
		if err != nil {
			return err
		}
		update := before.Update().SetUpdatedAt(store.Now())
		if moved, err = s.changeNamespace(ctx, tx, r, before, update); err != nil {
			return err
		}
		if err := s.setFields(r, before, update); err != nil {
			return err
		}
		if row, err = update.Save(ctx); err != nil {
			return taken(err, before.Type, before.BaseURL, r.GetNamespace())
		}
		return s.Audited(ctx, tx, before, row)
	})
	if err != nil {
		return nil, err
	}
	if r.Subscribe != nil || moved {
		if row, err = s.webhooks.applyWebhook(ctx, row, r.Subscribe == nil || r.GetSubscribe()); err != nil {
			return nil, err
		}
	}
	config, err := connect.ConfigMessage(ctx, s.store.Reader, row)
	return &scmv1.PatchScmConfigResponse{Config: config}, err
}

func (s *Configurations) setFields(r *scmv1.PatchScmConfigRequest, before *ent.ScmConfig, update *ent.ScmConfigUpdateOne) error {
	if r.AccessToken != nil {
		sealed, err := s.seals.Seal(connect.ConfigTable, connect.AccessToken, before.DeploymentID, before.ID, r.GetAccessToken())
		if err != nil {
			return err
		}
		if sealed == nil {
			update.ClearAccessToken()
		} else {
			update.SetAccessToken(sealed)
		}
		clearCheck(update)
	}
	if r.AutoScan != nil {
		update.SetAutoScan(r.GetAutoScan())
	}
	if r.UseNetworkBroker != nil {
		update.SetUseNetworkBroker(r.GetUseNetworkBroker())
	}
	if settings := r.GetAutoScanSettings(); settings != nil && settings.DiffEnabled != nil {
		update.SetDiffEnabled(settings.GetDiffEnabled())
	}
	return nil
}

// changeNamespace changes the namespace. It clears the state of the old one and deletes its webhooks. subscribed
// reports that there were some: the new namespace then gets webhooks with a new receiver, because requests to the old
// receiver concern the old namespace. A change of case only is not a move.
func (s *Configurations) changeNamespace(ctx context.Context, tx *ent.Tx, r *scmv1.PatchScmConfigRequest, before *ent.ScmConfig, update *ent.ScmConfigUpdateOne) (subscribed bool, err error) {
	if r.Namespace == nil || r.GetNamespace() == before.Namespace {
		return false, nil
	}
	if err := checkNamespace(connect.TypeOf(before.Type), r.GetNamespace()); err != nil {
		return false, err
	}
	if err := checkFree(ctx, tx, before.ID, before.Type, before.BaseURL, r.GetNamespace()); err != nil {
		return false, err
	}
	update.SetNamespace(r.GetNamespace())
	if strings.EqualFold(r.GetNamespace(), before.Namespace) {
		return false, nil
	}
	if err := s.enqueueUnsubscribe(ctx, before); err != nil {
		return false, err
	}
	clearCheck(update)
	app, err := appOf(ctx, tx, before)
	if err != nil {
		return false, err
	}
	update.SetScmID("").SetEntityType("").ClearLastSuccessfulSyncAt().
		SetInstalled(app.installedIn(r.GetNamespace())).SetSuspended(app.suspendedIn(r.GetNamespace()))
	endReceiver(update)
	return len(before.Subscriptions) > 0, nil
}

// clearCheck clears the result of a check with another token or namespace.
func clearCheck(update *ent.ScmConfigUpdateOne) {
	update.ClearCheckedAt().SetCheckOk(false).SetCheckError("").ClearTokenScopes()
}
