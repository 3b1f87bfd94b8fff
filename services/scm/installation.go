package scm

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/webhook"
)

// usedApp is the application that a configuration uses; its row is nil for none.
type usedApp struct{ row *ent.ScmApp }

func appOf(ctx context.Context, tx *ent.Tx, config *ent.ScmConfig) (usedApp, error) {
	if config.ScmAppID == nil {
		return usedApp{}, nil
	}
	row, err := tx.ScmApp.Query().Where(scmapp.ID(*config.ScmAppID)).Only(ctx)
	return usedApp{row}, ignoreMissing(err)
}

func (a usedApp) id() *int64 {
	if a.row == nil {
		return nil
	}
	return &a.row.ID
}

// installedIn reports whether the application is installed in a namespace, as far as is known.
func (a usedApp) installedIn(namespace string) bool {
	return a.row != nil && a.row.InstallationID != "" && strings.EqualFold(a.row.Namespace, namespace)
}

func (a usedApp) suspendedIn(namespace string) bool {
	return a.installedIn(namespace) && a.row.Suspended
}

// refreshApp asks the host about the application of a configuration, and stores whether it is installed in the
// configuration's namespace and may read code there. A host that does not answer changes nothing: the caller's own
// requests show why.
func (c *Connections) refreshApp(ctx context.Context, config *ent.ScmConfig) error {
	if config.ScmAppID == nil {
		return nil
	}
	asked, err := c.store.Reader.ScmApp.Query().Where(scmapp.ID(*config.ScmAppID)).Only(ctx)
	if err != nil || len(asked.PrivateKey) == 0 || !isGitHub(connect.TypeOf(asked.ScmType)) { // others tell nothing about it
		return ignoreMissing(err)
	}
	app, err := c.OpenApp(asked)
	if err != nil {
		return err
	}
	found, err := app.InstalledIn(ctx, config.Namespace)
	if connect.ErrorText(err) != "" {
		return nil
	}
	if err != nil {
		return err
	}
	return c.NoteInstallation(ctx, asked, config.Namespace, found)
}

// seen takes any event of an application as the sign of its installation, if none of its events told about it: the
// event of the installation may have come before this server listened.
func (w *eventActions) seen(ctx context.Context, tx *ent.Tx, args eventArgs) error {
	if args.AppID == 0 || args.Event.Kind == webhook.Installed || args.Event.Installation.ID == 0 {
		return nil
	}
	app, err := tx.ScmApp.Query().Where(scmapp.ID(args.AppID)).Only(ctx)
	if err != nil || app.InstallationID != "" || app.InstallationAt != nil {
		return ignoreMissing(err)
	}
	return w.StoreInstallation(ctx, tx, app, webhook.Installation{ID: args.Event.Installation.ID, Present: true})
}
