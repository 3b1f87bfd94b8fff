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

// operation describes a command that changes the store, for the audit trail.
type operation struct {
	// method is the name in audit entries, such as token.create.
	method string
	// request contains the command's arguments, without secrets.
	request map[string]any
	// deployments returns the deployments whose trails get an entry when the change itself names none.
	deployments func(ctx context.Context, st *store.Store) ([]int64, error)
}

// operate runs a command that changes the store outside the server. All such commands must use it. The key must exist
// and fit before anything is written. Every transaction of fn gets an audit entry, whether fn calls audit.Change or
// not. A successful command that changed nothing gets one, too.
func operate(ctx context.Context, cfg config.Config, op operation, fn func(ctx context.Context, st *store.Store, keyring *secret.Keyring) error) error {
	return apierr.Plain(withCurrent(ctx, cfg, func(st *store.Store) error {
		deployments, err := op.deployments(ctx, st)
		if err != nil {
			return err
		}
		if len(deployments) == 0 {
			return fmt.Errorf("the database %s has %w: start the server once with these settings (palisade serve)", st.Location(), errNoDeployment)
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
		call.Home = deployments[0]
		ctx, recorder := trail.Record(tenant.System(ctx), call)
		st.Guard(func(ctx context.Context) error { recorder.Ensure(ctx, deployments); return nil })
		if err := fn(ctx, st, keyring); err != nil || recorder.Written() > 0 {
			return err
		}
		return st.Write(ctx, func(context.Context, *ent.Tx) error { return nil })
	}))
}

// errNoDeployment means that there is no audit trail for an entry.
var errNoDeployment = errors.New("no deployment")

// call describes the command in its entries.
func (op operation) call() (audit.Call, error) {
	request, err := structpb.NewStruct(op.request)
	host, _ := os.Hostname() // omitted on error
	return audit.Call{Actor: audit.Actor{Kind: audit.KindOperator, Name: operator()}, Method: op.method, Remote: host, Request: request}, err
}

// operator is the operating system account that runs the command, if known.
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

// errReads is the error of a read-only command that tries to write.
var errReads = errors.New("this command changes the database without an entry in the audit trail: it must use operate")

// withStore runs fn, which only reads, on the open database. Its schema must be up to date.
func withStore(ctx context.Context, cfg config.Config, fn func(*store.Store) error) error {
	return withCurrent(ctx, cfg, func(st *store.Store) error {
		st.Guard(func(context.Context) error { return errReads })
		return fn(st)
	})
}

// ofSlug selects the deployment of a command for one deployment.
func ofSlug(slug string) func(context.Context, *store.Store) ([]int64, error) {
	return func(ctx context.Context, st *store.Store) ([]int64, error) {
		row, err := access.NewTokens(st).DeploymentBySlug(ctx, slug)
		if err != nil {
			return nil, err
		}
		return []int64{row.ID}, nil
	}
}

// ofAll selects the deployments of a command for the whole server.
func ofAll(ctx context.Context, st *store.Store) ([]int64, error) {
	return st.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(tenant.System(ctx))
}

// ofUser selects the deployments of a command for one user: the user's deployments, or else the first one.
func ofUser(email string) func(context.Context, *store.Store) ([]int64, error) {
	return func(ctx context.Context, st *store.Store) ([]int64, error) {
		if ids, err := access.DeploymentsOf(ctx, st, email); err != nil || len(ids) > 0 {
			return ids, err
		}
		ids, err := ofAll(ctx, st)
		return ids[:min(1, len(ids))], err
	}
}
