package connect

import (
	"context"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/webhook"
)

// Object kinds in the audit trail.
const (
	AuditConfig = "scm_config"
	AuditApp    = "scm_app"
)

// Installed reports whether the application of a configuration is installed in its namespace. Earlier versions stored
// it for configurations without an application, too.
func Installed(config *ent.ScmConfig) bool { return config.Installed && config.ScmAppID != nil }

// Suspended reports whether the host has suspended the application of a configuration.
func Suspended(config *ent.ScmConfig) bool { return config.Suspended && config.ScmAppID != nil }

// NoteInstallation stores what the host answered about an application in a namespace: webhooks may not reach this
// server. It writes only if something else is stored. asked is the application as it was before the question.
func (c *Hosts) NoteInstallation(ctx context.Context, asked *ent.ScmApp, namespace string, found host.Installed) error {
	about := webhook.Installation{
		Present: found.ID != 0, ID: found.ID, Suspended: found.Suspended, ReadsCode: &found.ReadsCode, UpdatedAt: found.UpdatedAt,
	}
	own := strings.EqualFold(namespace, asked.Namespace)
	if !own || isStored(asked, about) {
		differs, err := c.store.Reader.ScmConfig.Query().Where(otherState(asked, namespace, about)...).Exist(ctx)
		if err != nil || !differs {
			return err
		}
	}
	return c.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := c.LockApp(ctx, tx, scmapp.ID(asked.ID))
		switch {
		case ent.IsNotFound(err):
			return nil // deleted concurrently
		case err != nil:
			return err
		case now.InstallationID != asked.InstallationID || now.Suspended != asked.Suspended:
			return nil // a webhook told a newer state
		case own:
			return c.StoreInstallation(ctx, tx, now, about)
		}
		return c.installedConfigs(ctx, tx, now, namespace, about)
	})
}

// LockApp finds an application and locks it until the end of the transaction.
func (c *Hosts) LockApp(ctx context.Context, tx *ent.Tx, where ...predicate.ScmApp) (*ent.ScmApp, error) {
	query := tx.ScmApp.Query().Where(where...)
	if c.store.Postgres() {
		query.ForUpdate()
	}
	return query.Only(ctx)
}

// isStored reports whether an application has the state that the host told.
func isStored(app *ent.ScmApp, about webhook.Installation) bool {
	isNewer := !about.UpdatedAt.IsZero() && (app.InstallationAt == nil || *app.InstallationAt < store.Micros(about.UpdatedAt))
	return !isNewer && app.InstallationID == installationID(about) && app.Suspended == about.Suspended && app.CodeAccess == *about.ReadsCode
}

func installationID(about webhook.Installation) string {
	if !about.Present {
		return ""
	}
	return strconv.FormatInt(about.ID, 10)
}

// StoreInstallation stores the state of an application in its own namespace, for the application and its
// configurations. An application that is not installed reads no code.
func (c *Hosts) StoreInstallation(ctx context.Context, tx *ent.Tx, before *ent.ScmApp, about webhook.Installation) error {
	update := before.Update().SetInstallationID(installationID(about)).SetSuspended(about.Suspended)
	if !about.UpdatedAt.IsZero() {
		update.SetInstallationAt(store.Micros(about.UpdatedAt))
	}
	if !about.Present {
		update.SetCodeAccess(false)
	} else if about.ReadsCode != nil {
		update.SetCodeAccess(*about.ReadsCode)
	}
	after, err := update.Save(ctx)
	if err != nil {
		return err
	}
	if before.InstallationID != after.InstallationID || before.Suspended != after.Suspended || before.CodeAccess != after.CodeAccess {
		audit.Change(ctx, AuditApp, after.ID, AppMessage(before), AppMessage(after))
	}
	return c.installedConfigs(ctx, tx, after, after.Namespace, about)
}

// installedConfigs stores the state of an application in its configuration of a namespace.
func (c *Hosts) installedConfigs(ctx context.Context, tx *ent.Tx, app *ent.ScmApp, namespace string, about webhook.Installation) error {
	configs, err := tx.ScmConfig.Query().Where(otherState(app, namespace, about)...).Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	for _, before := range configs {
		after, err := before.Update().SetInstalled(about.Present).SetSuspended(about.Suspended).SetUpdatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		if err := c.Audited(ctx, tx, before, after); err != nil {
			return err
		}
	}
	return nil
}

// otherState selects the configurations that use an application in a namespace and have another state.
func otherState(app *ent.ScmApp, namespace string, about webhook.Installation) []predicate.ScmConfig {
	return []predicate.ScmConfig{
		scmconfig.ScmAppID(app.ID), scmconfig.NamespaceEqualFold(namespace),
		scmconfig.Or(scmconfig.InstalledNEQ(about.Present), scmconfig.SuspendedNEQ(about.Suspended)),
	}
}
