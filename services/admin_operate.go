package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// operation describes a command for the audit trail.
type operation struct {
	// method is the method in entries, such as token.create.
	method string
	// request holds the arguments, without secrets.
	request map[string]any
	// deployments returns the deployments that get an entry for changes that belong to no deployment.
	deployments func(ctx context.Context, st *store.Store) ([]int64, error)
}

// operate runs a command that changes the store without the server. It is the only way to do so. The key must exist and
// match before anything is written. Each transaction of fn gets an audit entry, with or without audit.Change. A
// successful command without changes gets an entry too.
func operate(ctx context.Context, cfg config.Config, op operation, fn func(ctx context.Context, st *store.Store, keyring *secret.Keyring) error) error {
	return apierr.Plain(withCurrent(ctx, cfg, func(st *store.Store) error {
		homes, err := op.deployments(ctx, st)
		if err != nil {
			return err
		}
		if len(homes) == 0 {
			return fmt.Errorf("the database %s has %w: start the server once with these settings (palisade serve)", st.Location(), errNoTrail)
		}
		keyring, err := secret.OpenExisting(ctx, st, cfg.KeyPath())
		if err != nil {
			return err
		}
		trail, err := audit.Open(ctx, st, keyring, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		call, err := op.call()
		if err != nil {
			return err
		}
		call.Home = homes[0]
		ctx, recorder := trail.Record(tenant.System(ctx), call)
		st.Guard(func(ctx context.Context) error { recorder.Ensure(ctx, homes); return nil })
		if err := fn(ctx, st, keyring); err != nil || recorder.Written() > 0 {
			return err
		}
		return st.Write(ctx, func(context.Context, *ent.Tx) error { return nil })
	}))
}

// errNoTrail: the database has no trail that an entry could go to.
var errNoTrail = errors.New("no deployment")

// call describes the command in its entries.
func (op operation) call() (audit.Call, error) {
	request, err := structpb.NewStruct(op.request)
	host, _ := os.Hostname() // omitted if unknown
	return audit.Call{Actor: audit.Actor{Kind: audit.KindOperator, Name: operator()}, Method: op.method, Remote: host, Request: request}, err
}

// operator is the name of the operating system account that runs the command, if known.
func operator() string {
	name := "operator"
	if account, err := user.Current(); err == nil && account.Username != "" {
		name = account.Username
	}
	if behind := os.Getenv("SUDO_USER"); behind != "" && behind != name {
		return behind + " as " + name
	}
	return name
}

// errReadOnly: a read-only command tried to write.
var errReadOnly = errors.New("this command changes the database, and leaves no entry in the audit trail: it has to be run by operate")

// withStore runs a read-only fn on the open database, which must have the current schema.
func withStore(ctx context.Context, cfg config.Config, fn func(*store.Store) error) error {
	return withCurrent(ctx, cfg, func(st *store.Store) error {
		st.Guard(func(context.Context) error { return errReadOnly })
		return fn(st)
	})
}

// ofSlug returns the homes of a command for one deployment.
func ofSlug(slug string) func(context.Context, *store.Store) ([]int64, error) {
	return func(ctx context.Context, st *store.Store) ([]int64, error) {
		row, err := access.NewTokens(st).DeploymentBySlug(ctx, slug)
		if err != nil {
			return nil, err
		}
		return []int64{row.ID}, nil
	}
}

// ofAll returns the homes of a command for the whole server.
func ofAll(ctx context.Context, st *store.Store) ([]int64, error) {
	return st.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(tenant.System(ctx))
}

// ofUser returns the homes of a command for one user: the user's deployments, or else the first deployment.
func ofUser(email string) func(context.Context, *store.Store) ([]int64, error) {
	return func(ctx context.Context, st *store.Store) ([]int64, error) {
		if ids, err := access.DeploymentsOf(ctx, st, email); err != nil || len(ids) > 0 {
			return ids, err
		}
		ids, err := ofAll(ctx, st)
		return ids[:min(1, len(ids))], err
	}
}
